"""The eigenbasis of the Gram matrix, kept from observation to observation."""
