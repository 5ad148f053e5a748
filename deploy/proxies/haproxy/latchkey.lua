-- The action `latchkey`: asks the service about a request and sets the variables `txn.latchkey_…`.

-- The listener `latchkey` in haproxy.cfg.
local SERVICE = "http://127.0.0.1:8079/auth/verify?"
local HEADERS = { "key-id", "owner", "meta", "remaining", "parent-key-id", "derived-meta" }

core.register_action("latchkey", { "http-req" }, function(txn)
  -- Until the service has decided, the request is refused.
  txn:set_var("txn.latchkey_status", 503)
  local sent = txn.http:req_get_headers()
  local headers = {
    ["x-forwarded-for"] = { txn.f:src() },
    ["x-forwarded-method"] = { txn.f:method() },
    ["x-forwarded-uri"] = { txn.f:pathq() },
  }
  -- With `header=X-Api-Key` in the query: "x-api-key". All values, so that a repeated header is rejected.
  for _, value in pairs(sent["authorization"] or {}) do
    headers["authorization"] = headers["authorization"] or {}
    table.insert(headers["authorization"], value)
  end
  local query = txn:get_var("txn.latchkey_query")
  local answer = core.httpclient():get({ url = SERVICE .. query, headers = headers, timeout = 5000 })
  if answer == nil or answer.status == nil or answer.status < 200 then
    return
  end
  local function value(name)
    local values = answer.headers and answer.headers[name]
    return values and (values[0] or values[1]) or ""
  end
  for _, name in ipairs(HEADERS) do
    txn:set_var("txn.latchkey_" .. name:gsub("-", "_"), value("x-latchkey-" .. name))
  end
  txn:set_var("txn.latchkey_authenticate", value("www-authenticate"))
  txn:set_var("txn.latchkey_retry_after", value("retry-after"))
  txn:set_var("txn.latchkey_ratelimit", value("ratelimit"))
  txn:set_var("txn.latchkey_ratelimit_policy", value("ratelimit-policy"))
  txn:set_var("txn.latchkey_status", answer.status)
end)
