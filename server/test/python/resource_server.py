"""A resource server and a client by Authlib: the server takes access tokens, and asks about keys by introspection.

Reads what it needs as JSON from its argument, and prints the name of each check that passed.
"""

import json
import os
import sys

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.flask_oauth2 import ResourceProtector, current_token
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7662 import IntrospectTokenValidator
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from flask import Flask, jsonify

# The service under test is on this machine, without TLS.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
given = json.loads(sys.argv[1])
issuer = given["issuer"]
audience = given["audience"]
metadata = AuthorizationServerMetadata(
    requests.get(f"{issuer}/.well-known/oauth-authorization-server", timeout=10).json()
)
assert metadata["issuer"] == issuer


class AccessTokens(JWTBearerTokenValidator):
    def get_jwks(self):
        return requests.get(metadata["jwks_uri"], timeout=10).json()


class Introspection(IntrospectTokenValidator):
    def introspect_token(self, token_string):
        answer = requests.post(
            metadata["introspection_endpoint"],
            data={"token": token_string, "token_type_hint": "access_token"},
            auth=(given["rootKeyId"], given["rootKey"]),
            timeout=10,
        )
        answer.raise_for_status()
        return answer.json()


app = Flask(__name__)
with_tokens = ResourceProtector()
with_tokens.register_token_validator(AccessTokens(issuer=issuer, resource_server=audience))
with_introspection = ResourceProtector()
with_introspection.register_token_validator(Introspection())


@app.get("/by-token")
@with_tokens("documents.read")
def by_token():
    return jsonify(client=current_token["client_id"], owner=current_token["latchkey"]["externalId"])


@app.get("/by-introspection")
@with_introspection("documents.read")
def by_introspection():
    return jsonify(client=current_token["client_id"], owner=current_token["latchkey"]["identity"]["externalId"])


server = app.test_client()


def get(path: str, token: str):
    answer = server.get(path, headers={"Authorization": f"Bearer {token}"})
    return answer.status_code, answer.get_json()


def fetch(key_id: str, key: str, method: str = "client_secret_basic", **more: str) -> str:
    with OAuth2Session(key_id, key, token_endpoint_auth_method=method) as client:
        return client.fetch_token(metadata["token_endpoint"], grant_type="client_credentials", **more)["access_token"]


reader = given["reader"]
expected = (200, {"client": reader["keyId"], "owner": "acme"})
for method in metadata["token_endpoint_auth_methods_supported"]:
    token = fetch(reader["keyId"], reader["key"], method, resource=audience, scope="documents.read")
    assert get("/by-token", token) == expected, get("/by-token", token)
    assert get("/by-introspection", token) == expected
    print(f"a token by {method}")
assert get("/by-introspection", reader["key"]) == expected
print("a key by introspection")

for name, key in given["others"].items():
    status, body = get("/by-introspection", key)
    assert (status, body["error"]) == (401, "invalid_token"), name
print("no other key by introspection")

writer = given["writer"]
for path, credential in [
    ("/by-token", fetch(writer["keyId"], writer["key"], resource=audience)),
    ("/by-introspection", writer["key"]),
]:
    status, body = get(path, credential)
    assert (status, body["error"]) == (403, "insufficient_scope"), (path, body)
print("no scope beyond the permissions of the key")

elsewhere = fetch(reader["keyId"], reader["key"], resource=given["otherAudience"])
assert get("/by-token", elsewhere)[0] == 401
print("no token for another audience")

head, body, signature = token.split(".")
assert get("/by-token", f"{head}.{body}.{signature[:-8]}AAAAAAAA")[0] == 401
print("no token with another signature")

for key_id, key in [(reader["keyId"], writer["key"]), (reader["keyId"], "3kAqEg4u4qMxCGFAVMuGsb3cijGp")]:
    try:
        fetch(key_id, key, resource=audience)
    except OAuthError as refused:
        reason = refused.error
    else:
        reason = "a token was issued"
    assert reason == "invalid_client", reason
print("no token for another key")
