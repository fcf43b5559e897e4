"""From a request to a call of a deployment and back: routes, request bodies, responses, errors."""
