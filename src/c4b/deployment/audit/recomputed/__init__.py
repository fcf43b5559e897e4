"""Every formula once more, for the audit. Shares no code with what decides."""
