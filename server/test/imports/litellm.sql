--
-- PostgreSQL database dump
--

\restrict 7gkvXLLCqfS3TiEHnyEEUK3wvTVAnj8HacO86SPNk4TYa9A8O2qgAKwZerSPl72

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: LiteLLM_SpendLogs; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public."LiteLLM_SpendLogs" (
    request_id text NOT NULL,
    call_type text NOT NULL,
    api_key text DEFAULT ''::text NOT NULL,
    spend double precision DEFAULT 0.0 NOT NULL,
    total_tokens integer DEFAULT 0 NOT NULL,
    prompt_tokens integer DEFAULT 0 NOT NULL,
    completion_tokens integer DEFAULT 0 NOT NULL,
    "startTime" timestamp(3) without time zone NOT NULL,
    "endTime" timestamp(3) without time zone NOT NULL,
    "completionStartTime" timestamp(3) without time zone,
    model text DEFAULT ''::text NOT NULL,
    model_id text DEFAULT ''::text,
    model_group text DEFAULT ''::text,
    custom_llm_provider text DEFAULT ''::text,
    api_base text DEFAULT ''::text,
    "user" text DEFAULT ''::text,
    metadata jsonb DEFAULT '{}'::jsonb,
    cache_hit text DEFAULT ''::text,
    cache_key text DEFAULT ''::text,
    request_tags jsonb DEFAULT '[]'::jsonb,
    team_id text,
    end_user text,
    requester_ip_address text,
    messages jsonb DEFAULT '{}'::jsonb,
    response jsonb DEFAULT '{}'::jsonb,
    proxy_server_request jsonb DEFAULT '{}'::jsonb,
    session_id text,
    status text,
    mcp_namespaced_tool_name text,
    agent_id text,
    request_duration_ms integer,
    created_at timestamp(3) without time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamp(3) without time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    litellm_call_id text,
    billing_agent_id text,
    organization_id text
);


ALTER TABLE public."LiteLLM_SpendLogs" OWNER TO postgres;

--
-- Name: LiteLLM_UserTable; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public."LiteLLM_UserTable" (
    user_id text NOT NULL,
    user_alias text,
    team_id text,
    sso_user_id text,
    organization_id text,
    password text,
    teams text[] DEFAULT ARRAY[]::text[],
    user_role text,
    max_budget double precision,
    spend double precision DEFAULT 0.0 NOT NULL,
    user_email text,
    models text[],
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    max_parallel_requests integer,
    tpm_limit bigint,
    rpm_limit bigint,
    budget_duration text,
    budget_reset_at timestamp(3) without time zone,
    allowed_cache_controls text[] DEFAULT ARRAY[]::text[],
    model_spend jsonb DEFAULT '{}'::jsonb NOT NULL,
    model_max_budget jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp(3) without time zone DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp(3) without time zone DEFAULT CURRENT_TIMESTAMP,
    object_permission_id text,
    policies text[] DEFAULT ARRAY[]::text[],
    password_reset_required boolean,
    last_breach_check_at timestamp(3) without time zone
);


ALTER TABLE public."LiteLLM_UserTable" OWNER TO postgres;

--
-- Name: LiteLLM_VerificationToken; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public."LiteLLM_VerificationToken" (
    token text NOT NULL,
    key_name text,
    key_alias text,
    soft_budget_cooldown boolean DEFAULT false NOT NULL,
    spend double precision DEFAULT 0.0 NOT NULL,
    expires timestamp(3) without time zone,
    models text[],
    aliases jsonb DEFAULT '{}'::jsonb NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    user_id text,
    team_id text,
    permissions jsonb DEFAULT '{}'::jsonb NOT NULL,
    max_parallel_requests integer,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    blocked boolean,
    tpm_limit bigint,
    rpm_limit bigint,
    max_budget double precision,
    budget_duration text,
    budget_reset_at timestamp(3) without time zone,
    allowed_cache_controls text[] DEFAULT ARRAY[]::text[],
    model_spend jsonb DEFAULT '{}'::jsonb NOT NULL,
    model_max_budget jsonb DEFAULT '{}'::jsonb NOT NULL,
    budget_id text,
    organization_id text,
    created_at timestamp(3) without time zone DEFAULT CURRENT_TIMESTAMP,
    created_by text,
    updated_at timestamp(3) without time zone DEFAULT CURRENT_TIMESTAMP,
    updated_by text,
    allowed_routes text[] DEFAULT ARRAY[]::text[],
    object_permission_id text,
    auto_rotate boolean DEFAULT false,
    key_rotation_at timestamp(3) without time zone,
    last_rotation_at timestamp(3) without time zone,
    rotation_count integer DEFAULT 0,
    rotation_interval text,
    project_id text,
    router_settings jsonb DEFAULT '{}'::jsonb,
    policies text[] DEFAULT ARRAY[]::text[],
    access_group_ids text[] DEFAULT ARRAY[]::text[],
    last_active timestamp(3) without time zone,
    agent_id text,
    budget_limits jsonb,
    budget_fallbacks jsonb DEFAULT '{}'::jsonb NOT NULL,
    key_type text,
    settings_updated_at timestamp(3) without time zone,
    tpd_limit bigint,
    total_spend double precision DEFAULT 0.0 NOT NULL
);


ALTER TABLE public."LiteLLM_VerificationToken" OWNER TO postgres;

--
-- Data for Name: LiteLLM_SpendLogs; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public."LiteLLM_SpendLogs" (request_id, call_type, api_key, spend, total_tokens, prompt_tokens, completion_tokens, "startTime", "endTime", "completionStartTime", model, model_id, model_group, custom_llm_provider, api_base, "user", metadata, cache_hit, cache_key, request_tags, team_id, end_user, requester_ip_address, messages, response, proxy_server_request, session_id, status, mcp_namespaced_tool_name, agent_id, request_duration_ms, created_at, updated_at, litellm_call_id, billing_agent_id, organization_id) FROM stdin;
req-1	acompletion		0	0	0	0	2026-11-22 14:32:42.653	2026-11-22 14:32:42.653	\N							{}			[]	\N	\N	\N	{"content": "INSERT INTO \\"LiteLLM_VerificationToken\\" VALUES ('x'); \\\\."}	{}	{}	\N	\N	\N	\N	\N	2026-11-22 14:32:42.653	2026-11-22 14:32:42.653	\N	\N	\N
\.


--
-- Data for Name: LiteLLM_UserTable; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public."LiteLLM_UserTable" (user_id, user_alias, team_id, sso_user_id, organization_id, password, teams, user_role, max_budget, spend, user_email, models, metadata, max_parallel_requests, tpm_limit, rpm_limit, budget_duration, budget_reset_at, allowed_cache_controls, model_spend, model_max_budget, created_at, updated_at, object_permission_id, policies, password_reset_required, last_breach_check_at) FROM stdin;
user-1	\N	\N	\N	\N	\N	{}	\N	\N	0	\N	\N	{}	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 14:32:42.641	2026-11-22 14:32:42.641	\N	{}	\N	\N
\.


--
-- Data for Name: LiteLLM_VerificationToken; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public."LiteLLM_VerificationToken" (token, key_name, key_alias, soft_budget_cooldown, spend, expires, models, aliases, config, user_id, team_id, permissions, max_parallel_requests, metadata, blocked, tpm_limit, rpm_limit, max_budget, budget_duration, budget_reset_at, allowed_cache_controls, model_spend, model_max_budget, budget_id, organization_id, created_at, created_by, updated_at, updated_by, allowed_routes, object_permission_id, auto_rotate, key_rotation_at, last_rotation_at, rotation_count, rotation_interval, project_id, router_settings, policies, access_group_ids, last_active, agent_id, budget_limits, budget_fallbacks, key_type, settings_updated_at, tpd_limit, total_spend) FROM stdin;
d5caa1cc45e2f5aa1f0ad5a068e5908d79d969b26429aa470e493edd7d3b5378	sk-...Bf0g	plain defaults	f	0	\N	{}	{}	{}	\N	\N	{}	\N	{}	\N	\N	\N	\N	\N	\N	{}	{}	{}	\N	\N	2026-11-22 11:28:43.378	\N	2026-11-22 11:28:43.378	\N	{}	\N	f	\N	\N	0	\N	\N	{}	{}	{}	\N	\N	\N	{}	\N	\N	\N	0
0a3ecfd4954f11854564180cdf51471fc02813a678785c86fa33d6e3f8e07f61	sk-...4i4g	blocked	f	0	\N	{}	{}	{}	\N	team-1	{}	\N	{}	t	\N	\N	\N	\N	\N	{}	{}	{}	\N	\N	2026-11-22 11:28:43.379	\N	2026-11-22 11:28:43.379	\N	{}	\N	f	\N	\N	0	\N	\N	{}	{}	{}	\N	\N	\N	{}	\N	\N	\N	0
65d66c9a76ba23e3b74627bf7084f43b0f4627e2758bd786f6b313eb9e39baaf	sk-...u_xw	\N	f	0	2026-11-23 11:27:36.136	{}	{}	{}	default_user_id	litellm-dashboard	{}	\N	{}	\N	\N	\N	\N	\N	\N	{}	{}	{}	\N	\N	2026-11-22 11:28:43.382	\N	2026-11-22 11:28:43.382	\N	{}	\N	f	\N	\N	0	\N	\N	{}	{}	{}	\N	\N	\N	{}	\N	\N	\N	0
fd9ba1afe4d18d336660e2828e3fda37581f73742c0753cdf358eecca3f4d1d8	sk-...LYkA	ci	f	1.25e-05	2095-05-04 11:27:36.13	{gpt-4o,"claude, sonnet"}	{}	{}	user-1	\N	{}	4	{"note": "tab\\there \\\\ it's; \\n(1)", "plan": "pro"}	\N	100000	60	12.5	30d	2026-12-01 00:00:00	{}	{}	{}	\N	\N	2026-11-22 11:28:43.372	\N	2026-11-22 11:28:43.372	\N	{}	\N	f	\N	\N	0	\N	\N	{}	{}	{}	\N	\N	\N	{}	\N	\N	\N	3.5
\.


--
-- Name: LiteLLM_SpendLogs LiteLLM_SpendLogs_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_SpendLogs"
    ADD CONSTRAINT "LiteLLM_SpendLogs_pkey" PRIMARY KEY (request_id);


--
-- Name: LiteLLM_UserTable LiteLLM_UserTable_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_UserTable"
    ADD CONSTRAINT "LiteLLM_UserTable_pkey" PRIMARY KEY (user_id);


--
-- Name: LiteLLM_VerificationToken LiteLLM_VerificationToken_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_VerificationToken"
    ADD CONSTRAINT "LiteLLM_VerificationToken_pkey" PRIMARY KEY (token);


--
-- Name: LiteLLM_SpendLogs_end_user_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_SpendLogs_end_user_idx" ON public."LiteLLM_SpendLogs" USING btree (end_user);


--
-- Name: LiteLLM_SpendLogs_session_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_SpendLogs_session_id_idx" ON public."LiteLLM_SpendLogs" USING btree (session_id);


--
-- Name: LiteLLM_SpendLogs_startTime_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_SpendLogs_startTime_idx" ON public."LiteLLM_SpendLogs" USING btree ("startTime");


--
-- Name: LiteLLM_SpendLogs_startTime_request_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_SpendLogs_startTime_request_id_idx" ON public."LiteLLM_SpendLogs" USING btree ("startTime", request_id);


--
-- Name: LiteLLM_UserTable_sso_user_id_key; Type: INDEX; Schema: public; Owner: postgres
--

CREATE UNIQUE INDEX "LiteLLM_UserTable_sso_user_id_key" ON public."LiteLLM_UserTable" USING btree (sso_user_id);


--
-- Name: LiteLLM_UserTable_user_email_lower_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_UserTable_user_email_lower_idx" ON public."LiteLLM_UserTable" USING btree (lower(user_email));


--
-- Name: LiteLLM_VerificationToken_budget_reset_at_expires_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_VerificationToken_budget_reset_at_expires_idx" ON public."LiteLLM_VerificationToken" USING btree (budget_reset_at, expires);


--
-- Name: LiteLLM_VerificationToken_team_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_VerificationToken_team_id_idx" ON public."LiteLLM_VerificationToken" USING btree (team_id);


--
-- Name: LiteLLM_VerificationToken_user_id_team_id_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "LiteLLM_VerificationToken_user_id_team_id_idx" ON public."LiteLLM_VerificationToken" USING btree (user_id, team_id);


--
-- Name: LiteLLM_UserTable LiteLLM_UserTable_object_permission_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_UserTable"
    ADD CONSTRAINT "LiteLLM_UserTable_object_permission_id_fkey" FOREIGN KEY (object_permission_id) REFERENCES public."LiteLLM_ObjectPermissionTable"(object_permission_id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- Name: LiteLLM_UserTable LiteLLM_UserTable_organization_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_UserTable"
    ADD CONSTRAINT "LiteLLM_UserTable_organization_id_fkey" FOREIGN KEY (organization_id) REFERENCES public."LiteLLM_OrganizationTable"(organization_id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- Name: LiteLLM_VerificationToken LiteLLM_VerificationToken_budget_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_VerificationToken"
    ADD CONSTRAINT "LiteLLM_VerificationToken_budget_id_fkey" FOREIGN KEY (budget_id) REFERENCES public."LiteLLM_BudgetTable"(budget_id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- Name: LiteLLM_VerificationToken LiteLLM_VerificationToken_object_permission_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_VerificationToken"
    ADD CONSTRAINT "LiteLLM_VerificationToken_object_permission_id_fkey" FOREIGN KEY (object_permission_id) REFERENCES public."LiteLLM_ObjectPermissionTable"(object_permission_id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- Name: LiteLLM_VerificationToken LiteLLM_VerificationToken_organization_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_VerificationToken"
    ADD CONSTRAINT "LiteLLM_VerificationToken_organization_id_fkey" FOREIGN KEY (organization_id) REFERENCES public."LiteLLM_OrganizationTable"(organization_id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- Name: LiteLLM_VerificationToken LiteLLM_VerificationToken_project_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."LiteLLM_VerificationToken"
    ADD CONSTRAINT "LiteLLM_VerificationToken_project_id_fkey" FOREIGN KEY (project_id) REFERENCES public."LiteLLM_ProjectTable"(project_id) ON UPDATE CASCADE ON DELETE SET NULL;


--
-- PostgreSQL database dump complete
--

\unrestrict 7gkvXLLCqfS3TiEHnyEEUK3wvTVAnj8HacO86SPNk4TYa9A8O2qgAKwZerSPl72

