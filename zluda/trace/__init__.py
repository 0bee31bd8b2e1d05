"""Reading traces of driver API calls, which the client library writes (zluda/client/src/trace.c): `zluda trace`."""
