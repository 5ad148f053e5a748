"""
Calls every operation that the published Python client and this service both have, with as many properties as possible.
The client checks every answer by its own models and raises an exception if one does not fit.

    python flows.py <address> <root key>

Prints a line of JSON for each flow: its name, and the failure or null.
"""

import asyncio
import hashlib
import json
import sys
import time
import traceback
import warnings

from unkey.py import Unkey, errors

warnings.simplefilter("ignore", DeprecationWarning)
address, root_key = sys.argv[1:3]
client = Unkey(root_key=root_key, server_url=address)
made = 0
flows = {}

LIMITS = [{"name": "requests", "limit": 100, "duration": 60_000, "auto_apply": True}]


def flow(name):
    def add(function):
        flows[name] = function
        return function

    return add


def unique(name):
    global made
    made += 1
    return f"{name}_{made}"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def in_order(create, names):
    """Creates one after the other, each in a millisecond of its own, because lists are in the order of creation."""
    for name in names:
        begun = time.time_ns() // 1_000_000
        yield create(name)
        while time.time_ns() // 1_000_000 == begun:
            pass


def new_api():
    return client.apis.create_api(name="payments").data.api_id


def new_role(*permissions):
    name = unique("reader")
    created = client.permissions.create_role(name=name, description="reads", permissions=list(permissions))
    return name, created.data.role_id


def new_permission():
    slug = unique("documents")
    created = client.permissions.create_permission(name="Documents", slug=slug, description="All of them")
    return slug, created.data.permission_id


def new_identity():
    external_id = unique("user")
    client.identities.create_identity(external_id=external_id, meta={"plan": "pro"}, ratelimits=LIMITS)
    return external_id


def everything():
    role, _ = new_role("documents.write")
    return dict(
        name="production",
        external_id=new_identity(),
        meta={"plan": "pro", "ratio": 1.5, "nested": {"list": [1, None, "ä"]}},
        roles=[role],
        permissions=["documents.read", "documents.*"],
        expires=int(time.time() * 1000) + 3_600_000,
        credits={"remaining": 100, "refill": {"interval": "monthly", "amount": 100, "refill_day": 15}},
        ratelimits=LIMITS,
        enabled=True,
    )


def new_key(**more):
    api_id = new_api()
    created = client.keys.create_key(api_id=api_id, prefix="prod", byte_length=24, **{**everything(), **more})
    return api_id, created.data.key_id, created.data.key


def new_namespace():
    namespace = unique("namespace")
    client.ratelimit.limit(namespace=namespace, identifier="user 1", limit=10, duration=60_000)
    client.ratelimit.set_override(namespace=namespace, identifier="user*", limit=5, duration=1_000)
    return namespace


def pages(first):
    items, page = [], first
    while page is not None:
        items += page.result.data
        page = page.next()
    return items


def rejected(error, call):
    try:
        call()
    except error as raised:
        assert raised.data.error.detail and raised.data.meta.request_id.startswith("req_")
        return
    raise AssertionError(f"{error.__name__} was not raised")


@flow("apis.createApi")
def _():
    assert new_api().startswith("api_")


@flow("apis.getApi")
def _():
    api_id = new_api()
    assert client.apis.get_api(api_id=api_id).data.name == "payments"
    rejected(errors.NotFoundErrorResponse, lambda: client.apis.get_api(api_id="api_never_existed"))


@flow("apis.deleteApi")
def _():
    api_id = new_api()
    client.apis.delete_api(api_id=api_id)
    rejected(errors.NotFoundErrorResponse, lambda: client.apis.delete_api(api_id=api_id))


@flow("apis.listKeys")
def _():
    api_id, key_id, _ = new_key()
    ids = [key_id, *in_order(lambda _: client.keys.create_key(api_id=api_id).data.key_id, range(4))]
    listed = pages(client.apis.list_keys(api_id=api_id, limit=2))
    assert [key.key_id for key in listed] == ids, "not in the order of creation"


@flow("keys.createKey")
def _():
    _, key_id, key = new_key(recoverable=True)
    assert key_id.startswith("key_") and key.startswith("prod_")
    rejected(errors.BadRequestErrorResponse, lambda: new_key(expires=int(time.time()) + 3_600))


@flow("keys.getKey")
def _():
    _, key_id, key = new_key(recoverable=True)
    data = client.keys.get_key(key_id=key_id, decrypt=True).data
    assert data.plaintext == key and data.meta["ratio"] == 1.5 and data.credits.refill.refill_day == 15


@flow("keys.whoami")
def _():
    _, key_id, key = new_key()
    assert client.keys.whoami(key=key).data.key_id == key_id


@flow("keys.updateKey")
def _():
    _, key_id, _ = new_key()
    client.keys.update_key(key_id=key_id, name=None, meta=None, expires=None, credits=None, enabled=False)
    data = client.keys.get_key(key_id=key_id).data
    assert data.name is None and data.expires is None and data.enabled is False
    client.keys.update_key(key_id=key_id, **everything())
    client.keys.update_key(key_id=key_id, credits={"remaining": 5, "refill": None})
    assert client.keys.get_key(key_id=key_id).data.credits.remaining == 5


@flow("keys.deleteKey")
def _():
    _, key_id, key = new_key()
    client.keys.delete_key(key_id=key_id, permanent=True)
    assert client.keys.verify_key(key=key).data.code == "NOT_FOUND"


@flow("keys.verifyKey")
def _():
    api_id, key_id, key = new_key()
    answer = client.keys.verify_key(
        key=key,
        tags=["path=/v1/documents", "länge"],
        permissions="documents.read AND (documents.write OR admin)",
        credits={"cost": 3},
        keyspaces=[api_id, "api_another"],
        ratelimits=[{"name": "requests", "cost": 2}, {"name": "burst", "limit": 10, "duration": 1_000}],
    ).data
    assert (answer.valid, answer.code, answer.key_id, answer.credits) == (True, "VALID", key_id, 97)
    # The limit of the key and that of its identity both count.
    assert [limit.name for limit in answer.ratelimits].count("requests") == 2
    assert client.keys.verify_key(key=key, keyspaces=["api_another"]).data.code == "NOT_FOUND"
    rejected(errors.BadRequestErrorResponse, lambda: client.keys.verify_key(key=key, permissions="a AND"))
    try:
        client.keys.verify_key(key=key, ratelimits=[{"name": "nowhere"}])
        raise AssertionError("an unknown limit was accepted")
    except errors.APIError as error:
        assert error.status_code == 412


@flow("keys.updateCredits")
def _():
    _, key_id, _ = new_key()
    change = lambda operation, **value: client.keys.update_credits(key_id=key_id, operation=operation, **value).data
    assert change("increment", value=5).remaining == 105
    assert change("decrement", value=200).remaining == 0
    assert change("set", value=7).remaining == 7
    assert change("set", value=None).remaining is None


@flow("keys.rerollKey")
def _():
    _, key_id, key = new_key()
    for expiration in (86_400_000, None):
        assert client.keys.reroll_key(key_id=key_id, expiration=expiration).data.key_id != key_id
        assert client.keys.verify_key(key=key, credits={"cost": 0}).data.valid
    client.keys.reroll_key(key_id=key_id, expiration=0)
    assert client.keys.verify_key(key=key).data.code == "EXPIRED"


@flow("keys.migrateKeys")
def _():
    migrated_hash = sha256(unique("secret"))
    keys = [{**everything(), "hash": migrated_hash}, {"hash": sha256(unique("secret"))}, {"hash": migrated_hash}]
    answer = client.keys.migrate_keys(migration_id="from elsewhere", api_id=new_api(), keys=keys).data
    assert (len(answer.migrated), answer.failed) == (2, [migrated_hash])


@flow("keys.addPermissions")
def _():
    _, key_id, _ = new_key()
    answer = client.keys.add_permissions(key_id=key_id, permissions=[new_permission()[0], unique("new")])
    assert len(answer.data) == 4


@flow("keys.removePermissions")
def _():
    _, key_id, _ = new_key()
    answer = client.keys.remove_permissions(key_id=key_id, permissions=["documents.read"])
    assert [permission.slug for permission in answer.data] == ["documents.*"]


@flow("keys.setPermissions")
def _():
    _, key_id, _ = new_key()
    slug, _ = new_permission()
    answer = client.keys.set_permissions(key_id=key_id, permissions=[slug])
    assert [permission.slug for permission in answer.data] == [slug]
    assert client.keys.set_permissions(key_id=key_id, permissions=[]).data == []


@flow("keys.addRoles")
def _():
    _, key_id, _ = new_key()
    name, _ = new_role("documents.read")
    assert name in [role.name for role in client.keys.add_roles(key_id=key_id, roles=[name]).data]


@flow("keys.removeRoles")
def _():
    _, key_id, _ = new_key()
    role = client.keys.get_key(key_id=key_id).data.roles[0]
    assert client.keys.remove_roles(key_id=key_id, roles=[role]).data == []


@flow("keys.setRoles")
def _():
    _, key_id, _ = new_key()
    name, _ = new_role()
    assert [role.name for role in client.keys.set_roles(key_id=key_id, roles=[name]).data] == [name]


@flow("identities.createIdentity")
def _():
    external_id = new_identity()
    rejected(
        errors.ConflictErrorResponse, lambda: client.identities.create_identity(external_id=external_id)
    )


@flow("identities.getIdentity")
def _():
    external_id = new_identity()
    data = client.identities.get_identity(identity=external_id).data
    assert data.external_id == external_id and data.ratelimits[0].name == "requests"
    assert client.identities.get_identity(identity=data.id).data == data


@flow("identities.listIdentities")
def _():
    prefix = unique("listed")
    ids = [f"{prefix}_{letter}" for letter in "cab"]
    list(in_order(lambda external_id: client.identities.create_identity(external_id=external_id), ids))
    listed = pages(client.identities.list_identities(limit=2, search=prefix))
    assert [identity.external_id for identity in listed] == ids, "not in the order of creation"


@flow("identities.updateIdentity")
def _():
    external_id = new_identity()
    data = client.identities.update_identity(identity=external_id, meta={}, ratelimits=[]).data
    assert not data.ratelimits


@flow("identities.deleteIdentity")
def _():
    external_id = new_identity()
    client.identities.delete_identity(identity=external_id)
    rejected(
        errors.NotFoundErrorResponse, lambda: client.identities.delete_identity(identity=external_id)
    )


@flow("permissions.createPermission")
def _():
    slug, _ = new_permission()
    rejected(
        errors.ConflictErrorResponse, lambda: client.permissions.create_permission(name="again", slug=slug)
    )


@flow("permissions.getPermission")
def _():
    slug, permission_id = new_permission()
    assert client.permissions.get_permission(permission=slug).data.id == permission_id


@flow("permissions.listPermissions")
def _():
    slugs = list(in_order(lambda _: new_permission()[0], range(5)))
    listed = pages(client.permissions.list_permissions(limit=2, search="documents_"))
    assert [permission.slug for permission in listed][-5:] == slugs, "not in the order of creation"


@flow("permissions.updatePermission")
def _():
    slug, permission_id = new_permission()
    renamed = unique("renamed")
    data = client.permissions.update_permission(permission=slug, name="New", slug=renamed, description=None).data
    assert (data.id, data.name, data.slug, data.description) == (permission_id, "New", renamed, None)
    rejected(
        errors.NotFoundErrorResponse, lambda: client.permissions.update_permission(permission=slug, name="New")
    )


@flow("permissions.deletePermission")
def _():
    slug, _ = new_permission()
    client.permissions.delete_permission(permission=slug)


@flow("permissions.createRole")
def _():
    name, _ = new_role("documents.read")
    rejected(errors.ConflictErrorResponse, lambda: client.permissions.create_role(name=name))


@flow("permissions.getRole")
def _():
    name, role_id = new_role("documents.read")
    assert client.permissions.get_role(role=role_id).data.name == name


@flow("permissions.listRoles")
def _():
    names = list(in_order(lambda _: new_role("documents.read")[0], range(5)))
    listed = pages(client.permissions.list_roles(limit=2, search="reader_"))
    assert [role.name for role in listed][-5:] == names, "not in the order of creation"


@flow("permissions.updateRole")
def _():
    name, role_id = new_role("documents.read")
    renamed = unique("renamed")
    data = client.permissions.update_role(role=name, name=renamed, description="new").data
    assert (data.id, data.name, data.description) == (role_id, renamed, "new")


@flow("permissions.deleteRole")
def _():
    name, _ = new_role()
    client.permissions.delete_role(role=name)


@flow("permissions.setRolePermissions")
def _():
    name, role_id = new_role("documents.read")
    for reference in ({"role": name}, {"role": role_id}, {"role_id": role_id}):
        slug, _ = new_permission()
        request = {**reference, "permissions": [slug]}
        answer = client.permissions.set_role_permissions(request=request)
        assert [permission.slug for permission in answer.data] == [slug]


@flow("ratelimit.limit")
def _():
    namespace = unique("namespace")
    ask = lambda cost: client.ratelimit.limit(
        namespace=namespace, identifier="user 1", limit=3, duration=60_000, cost=cost
    ).data
    assert (ask(2).success, ask(2).success, ask(1).remaining) == (True, False, 0)


@flow("ratelimit.multiLimit")
def _():
    checks = [
        {"namespace": namespace, "identifier": "user 1", "limit": 10, "duration": 60_000, "cost": 2}
        for namespace in (new_namespace(), unique("namespace"))
    ]
    answer = client.ratelimit.multi_limit(request=checks).data
    assert answer.passed and answer.limits[0].override_id


@flow("ratelimit.setOverride")
def _():
    namespace = new_namespace()
    assert client.ratelimit.set_override(namespace=namespace, identifier="vip", limit=0, duration=1_000).data


@flow("ratelimit.getOverride")
def _():
    data = client.ratelimit.get_override(namespace=new_namespace(), identifier="user 1").data
    assert data.identifier == "user*"


@flow("ratelimit.listOverrides")
def _():
    namespace = new_namespace()
    create = lambda identifier: client.ratelimit.set_override(
        namespace=namespace, identifier=identifier, limit=5, duration=1_000
    )
    list(in_order(create, ("b", "a")))
    listed = pages(client.ratelimit.list_overrides(namespace=namespace, limit=1))
    assert [override.identifier for override in listed] == ["user*", "b", "a"], "not in the order of creation"


@flow("ratelimit.deleteOverride")
def _():
    namespace = new_namespace()
    client.ratelimit.delete_override(namespace=namespace, identifier="user*")


@flow("an invalid cursor")
def _():
    rejected(
        errors.BadRequestErrorResponse, lambda: client.permissions.list_roles(limit=2, cursor="role_never_existed")
    )


@flow("an unknown root key")
def _():
    stranger = Unkey(root_key="lk_root_never_issued", server_url=address)
    rejected(errors.UnauthorizedErrorResponse, lambda: stranger.apis.create_api(name="payments"))


@flow("asynchronous calls")
def _():
    async def verify_all():
        _, _, key = new_key()
        async with Unkey(root_key=root_key, server_url=address) as asynchronous:
            return await asyncio.gather(*(asynchronous.keys.verify_key_async(key=key) for _ in range(10)))

    assert sorted(answer.data.credits for answer in asyncio.run(verify_all())) == list(range(90, 100))


for name, run in flows.items():
    problem = None
    try:
        run()
    except BaseException as error:
        problem = "".join(traceback.format_exception(error))[-2_000:]
    print(json.dumps({"flow": name, "problem": problem}), flush=True)
