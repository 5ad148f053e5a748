--
-- PostgreSQL database dump
--

\restrict eAVApSQ4mAxyN4rzA7T7lEtf04btr4dgveNFLjeBk2KjwXSebmWakUzt1Og6Pul

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

--
-- Name: expire(text); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.expire(name text) RETURNS text
    LANGUAGE plpgsql
    AS $_$
  BEGIN
    RETURN format($q$it's %s$q$, name);
  END;
$_$;


ALTER FUNCTION public.expire(name text) OWNER TO postgres;

--
-- Name: sync_tags(); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.sync_tags() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
  BEGIN
    -- It doesn't matter whether the row is new;
    INSERT INTO keyauth_credentials (key) VALUES ('in a function');
    RETURN NEW;
  END;
$$;


ALTER FUNCTION public.sync_tags() OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: acls; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.acls (
    id uuid NOT NULL,
    created_at timestamp with time zone,
    consumer_id uuid,
    "group" text,
    cache_key text,
    tags text[],
    ws_id uuid,
    updated_at timestamp with time zone
);


ALTER TABLE public.acls OWNER TO postgres;

--
-- Name: cluster_events; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.cluster_events (
    id uuid NOT NULL,
    node_id uuid,
    at timestamp with time zone,
    nbf timestamp with time zone,
    expire_at timestamp with time zone,
    channel text,
    data text
);


ALTER TABLE public.cluster_events OWNER TO postgres;

--
-- Name: consumers; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.consumers (
    id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT timezone('UTC'::text, CURRENT_TIMESTAMP(0)),
    username text,
    custom_id text,
    tags text[],
    ws_id uuid,
    updated_at timestamp with time zone
);


ALTER TABLE public.consumers OWNER TO postgres;

--
-- Name: keyauth_credentials; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.keyauth_credentials (
    id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT timezone('UTC'::text, CURRENT_TIMESTAMP(0)),
    consumer_id uuid,
    key text,
    tags text[],
    ttl timestamp with time zone,
    ws_id uuid,
    updated_at timestamp with time zone,
    cache_key text GENERATED ALWAYS AS (('keyauth_credentials:'::text || key)) STORED
);


ALTER TABLE public.keyauth_credentials OWNER TO postgres;

--
-- Name: plugins; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.plugins (
    id uuid NOT NULL,
    created_at timestamp with time zone,
    name text NOT NULL,
    consumer_id uuid,
    service_id uuid,
    route_id uuid,
    config jsonb NOT NULL,
    enabled boolean NOT NULL,
    cache_key text,
    protocols text[],
    tags text[],
    ws_id uuid,
    instance_name text,
    updated_at timestamp with time zone
);


ALTER TABLE public.plugins OWNER TO postgres;

--
-- Name: workspaces; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.workspaces (
    id uuid NOT NULL,
    name text,
    comment text,
    created_at timestamp with time zone,
    meta jsonb,
    config jsonb,
    updated_at timestamp with time zone
);


ALTER TABLE public.workspaces OWNER TO postgres;

--
-- Data for Name: acls; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.acls (id, created_at, consumer_id, "group", cache_key, tags, ws_id, updated_at) FROM stdin;
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d31	\N	3c1c5a0e-3f6d-4d57-9f0a-0d6a7a5a7c01	admins	\N	\N	\N	\N
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d32	\N	3c1c5a0e-3f6d-4d57-9f0a-0d6a7a5a7c01	editors	\N	\N	\N	\N
\.


--
-- Data for Name: cluster_events; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.cluster_events (id, node_id, at, nbf, expire_at, channel, data) FROM stdin;
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d51	\N	\N	\N	\N	invalidations	\\.
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d52	\N	\N	\N	\N	x	\nCOPY public.keyauth_credentials (key) FROM stdin;\nnot-a-key\n\\.\n
\.


--
-- Data for Name: consumers; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.consumers (id, created_at, username, custom_id, tags, ws_id, updated_at) FROM stdin;
3c1c5a0e-3f6d-4d57-9f0a-0d6a7a5a7c01	2026-01-01 00:00:00+00	Acme Inc.	acme	{gold,"a, b"}	9b57a89e-2dcf-40ad-a478-782b7457c157	2026-01-01 00:00:00+00
d1f5b2f4-1c1b-45c4-8f4e-9b6cfe8d3a02	2026-01-01 00:00:00+00	tab\there \\ it's	\N	\N	9b57a89e-2dcf-40ad-a478-782b7457c157	2026-01-01 00:00:00+00
aa0d6a7a-1c1b-45c4-8f4e-9b6cfe8d3a03	2026-01-01 00:00:00+00	without-a-key	\N	\N	9b57a89e-2dcf-40ad-a478-782b7457c157	2026-01-01 00:00:00+00
\.


--
-- Data for Name: keyauth_credentials; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.keyauth_credentials (id, created_at, consumer_id, key, tags, ttl, ws_id, updated_at) FROM stdin;
7b1c1b07-6f0e-4d9c-9a34-5f9d6b1f2a11	2026-01-01 00:00:00+00	3c1c5a0e-3f6d-4d57-9f0a-0d6a7a5a7c01	IkVd1WBEXv6K8ZQf3mYpT0nRs7uLaGcH	{production,"eu, west"}	\N	9b57a89e-2dcf-40ad-a478-782b7457c157	\N
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d22	2026-01-01 00:00:00+00	d1f5b2f4-1c1b-45c4-8f4e-9b6cfe8d3a02	own \\key; it's\tfür "x"	\N	2096-01-31 00:00:00+00	9b57a89e-2dcf-40ad-a478-782b7457c157	\N
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d23	2026-01-01 00:00:00+00	d1f5b2f4-1c1b-45c4-8f4e-9b6cfe8d3a02	expired-already	\N	2025-12-31 00:00:00+00	9b57a89e-2dcf-40ad-a478-782b7457c157	\N
\.


--
-- Data for Name: plugins; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.plugins (id, created_at, name, consumer_id, service_id, route_id, config, enabled, cache_key, protocols, tags, ws_id, instance_name, updated_at) FROM stdin;
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d40	\N	key-auth	\N	\N	\N	{"key_names": ["apikey"], "hide_credentials": false}	t	\N	{http,https}	\N	\N	\N	\N
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d41	\N	rate-limiting	3c1c5a0e-3f6d-4d57-9f0a-0d6a7a5a7c01	\N	\N	{"day": null, "hour": 1000, "year": null, "month": null, "minute": 60, "policy": "local", "second": null, "limit_by": "consumer", "error_code": 429, "error_message": "API rate limit exceeded", "fault_tolerant": true, "hide_client_headers": false}	t	\N	{grpc,grpcs,http,https}	\N	\N	\N	\N
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d42	\N	rate-limiting	d1f5b2f4-1c1b-45c4-8f4e-9b6cfe8d3a02	0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d99	\N	{"second": 5, "limit_by": "consumer"}	t	\N	{http}	\N	\N	\N	\N
0e4a2b36-92a5-4c63-8f0c-3b5a8f6e7d43	\N	ip-restriction	d1f5b2f4-1c1b-45c4-8f4e-9b6cfe8d3a02	\N	\N	{"allow": ["10.0.0.0/8"]}	t	\N	{http}	\N	\N	\N	\N
\.


--
-- Data for Name: workspaces; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.workspaces (id, name, comment, created_at, meta, config, updated_at) FROM stdin;
9b57a89e-2dcf-40ad-a478-782b7457c157	default	\N	\N	\N	\N	\N
\.


--
-- Name: acls acls_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.acls
    ADD CONSTRAINT acls_pkey PRIMARY KEY (id);


--
-- Name: cluster_events cluster_events_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.cluster_events
    ADD CONSTRAINT cluster_events_pkey PRIMARY KEY (id);


--
-- Name: consumers consumers_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.consumers
    ADD CONSTRAINT consumers_pkey PRIMARY KEY (id);


--
-- Name: keyauth_credentials keyauth_credentials_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.keyauth_credentials
    ADD CONSTRAINT keyauth_credentials_pkey PRIMARY KEY (id);


--
-- Name: plugins plugins_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.plugins
    ADD CONSTRAINT plugins_pkey PRIMARY KEY (id);


--
-- Name: workspaces workspaces_name_key; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_name_key UNIQUE (name);


--
-- Name: workspaces workspaces_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (id);


--
-- Name: keyauth_credentials keyauth_sync_tags_trigger; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER keyauth_sync_tags_trigger AFTER INSERT ON public.keyauth_credentials FOR EACH ROW EXECUTE FUNCTION public.sync_tags();


--
-- Name: acls acls_consumer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.acls
    ADD CONSTRAINT acls_consumer_id_fkey FOREIGN KEY (consumer_id) REFERENCES public.consumers(id);


--
-- Name: keyauth_credentials keyauth_credentials_consumer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.keyauth_credentials
    ADD CONSTRAINT keyauth_credentials_consumer_id_fkey FOREIGN KEY (consumer_id) REFERENCES public.consumers(id) ON DELETE CASCADE;


--
-- Name: plugins plugins_consumer_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.plugins
    ADD CONSTRAINT plugins_consumer_id_fkey FOREIGN KEY (consumer_id) REFERENCES public.consumers(id);


--
-- PostgreSQL database dump complete
--

\unrestrict eAVApSQ4mAxyN4rzA7T7lEtf04btr4dgveNFLjeBk2KjwXSebmWakUzt1Og6Pul

