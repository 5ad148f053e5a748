--
-- PostgreSQL database dump
--

\restrict oJd3K7pmTC8hAandjy7WdGHdd6EECPfwBpmkZedbGwA2dPIWSbWRPdz3kl23hNv

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
-- Name: account; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.account (
    id text NOT NULL,
    "accountId" text NOT NULL,
    "providerId" text NOT NULL,
    "userId" text NOT NULL,
    "accessToken" text,
    "refreshToken" text,
    "idToken" text,
    "accessTokenExpiresAt" timestamp with time zone,
    "refreshTokenExpiresAt" timestamp with time zone,
    scope text,
    password text,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone NOT NULL
);


ALTER TABLE public.account OWNER TO postgres;

--
-- Name: apikey; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.apikey (
    id text NOT NULL,
    "configId" text NOT NULL,
    name text,
    start text,
    "referenceId" text NOT NULL,
    prefix text,
    key text NOT NULL,
    "refillInterval" integer,
    "refillAmount" integer,
    "lastRefillAt" timestamp with time zone,
    enabled boolean,
    "rateLimitEnabled" boolean,
    "rateLimitTimeWindow" integer,
    "rateLimitMax" integer,
    "requestCount" integer,
    remaining integer,
    "lastRequest" timestamp with time zone,
    "expiresAt" timestamp with time zone,
    "createdAt" timestamp with time zone NOT NULL,
    "updatedAt" timestamp with time zone NOT NULL,
    permissions text,
    metadata text
);


ALTER TABLE public.apikey OWNER TO postgres;

--
-- Name: session; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.session (
    id text NOT NULL,
    "expiresAt" timestamp with time zone NOT NULL,
    token text NOT NULL,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone NOT NULL,
    "ipAddress" text,
    "userAgent" text,
    "userId" text NOT NULL
);


ALTER TABLE public.session OWNER TO postgres;

--
-- Name: user; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public."user" (
    id text NOT NULL,
    name text NOT NULL,
    email text NOT NULL,
    "emailVerified" boolean NOT NULL,
    image text,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);


ALTER TABLE public."user" OWNER TO postgres;

--
-- Name: verification; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.verification (
    id text NOT NULL,
    identifier text NOT NULL,
    value text NOT NULL,
    "expiresAt" timestamp with time zone NOT NULL,
    "createdAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    "updatedAt" timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL
);


ALTER TABLE public.verification OWNER TO postgres;

--
-- Data for Name: account; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.account (id, "accountId", "providerId", "userId", "accessToken", "refreshToken", "idToken", "accessTokenExpiresAt", "refreshTokenExpiresAt", scope, password, "createdAt", "updatedAt") FROM stdin;
6DMJc8xqSlb05et3PD10u4G1mDw52o63	L3cVcoIz118toNguBGmRhGx2jrrgyYI0	credential	L3cVcoIz118toNguBGmRhGx2jrrgyYI0	\N	\N	\N	\N	\N	\N	\N	2026-11-22 14:31:50.678+00	2026-11-22 14:31:50.678+00
\.


--
-- Data for Name: apikey; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.apikey (id, "configId", name, start, "referenceId", prefix, key, "refillInterval", "refillAmount", "lastRefillAt", enabled, "rateLimitEnabled", "rateLimitTimeWindow", "rateLimitMax", "requestCount", remaining, "lastRequest", "expiresAt", "createdAt", "updatedAt", permissions, metadata) FROM stdin;
LxMp0opDfvYsVMZnvibKHcSKAQtoahqK	default	defaults	HozCCW	L3cVcoIz118toNguBGmRhGx2jrrgyYI0	\N	NHKEkDyh3jEkzQKKl5lc8QA5a1KulqXFzqCYJ4RwwKU	\N	\N	\N	t	t	86400000	10	0	\N	\N	\N	2026-11-22 14:31:51.024+00	2026-11-22 14:31:51.024+00	\N	null
YycJZLHKZmoCABQ6fsinEvS1z9SZTLI0	default	disabled	ufXqTG	L3cVcoIz118toNguBGmRhGx2jrrgyYI0	\N	rkEP9KsxALTvaCKS63FP5cFPvk7XkoNFLOhb1TeFb90	\N	\N	\N	f	f	86400000	10	0	\N	\N	\N	2026-11-22 14:31:51.085+00	2026-11-22 14:31:51.085+00	\N	null
9VbIkRxv5GiGtA52g0n3OgASmRvUljm8	default	two-hourly	PcOWXC	L3cVcoIz118toNguBGmRhGx2jrrgyYI0	\N	F4vfSP8RFy_mEYLKQhI8q9DoLkaZtXJpLshxDbUaV_I	7200000	5	\N	t	t	86400000	10	0	5	\N	\N	2026-11-22 14:31:51.257+00	2026-11-22 14:31:51.257+00	\N	null
AmDYglfRmsjKcQkhHYnD1iscLbj4TZP2	default	ci	acme_n	L3cVcoIz118toNguBGmRhGx2jrrgyYI0	acme_	rO3D9N9f6NvRRHZG9ING4Sc4DMHncoua1th1J5-BEqU	86400000	1000	\N	t	t	60000	60	1	99	2026-11-22 14:31:51.268+00	2096-09-18 11:20:06.625+00	2026-11-22 14:31:50.873+00	2026-11-22 14:31:51.289+00	{"files":["read","write"]}	{"plan":"pro","note":"tab\\there \\\\ it's\\nnew"}
\.


--
-- Data for Name: session; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.session (id, "expiresAt", token, "createdAt", "updatedAt", "ipAddress", "userAgent", "userId") FROM stdin;
jjvYCK0qnmMfyBqOST31Fo2XlWe84qHW	2026-11-29 14:31:50.683+00	oyLMyOrTBynzF9lsUgNgFasIDkzYYXBu	2026-11-22 14:31:50.684+00	2026-11-22 14:31:50.684+00			L3cVcoIz118toNguBGmRhGx2jrrgyYI0
\.


--
-- Data for Name: user; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public."user" (id, name, email, "emailVerified", image, "createdAt", "updatedAt") FROM stdin;
L3cVcoIz118toNguBGmRhGx2jrrgyYI0	Ada	ada@example.com	f	\N	2026-11-22 14:31:50.645+00	2026-11-22 14:31:50.645+00
\.


--
-- Data for Name: verification; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.verification (id, identifier, value, "expiresAt", "createdAt", "updatedAt") FROM stdin;
\.


--
-- Name: account account_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.account
    ADD CONSTRAINT account_pkey PRIMARY KEY (id);


--
-- Name: apikey apikey_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.apikey
    ADD CONSTRAINT apikey_pkey PRIMARY KEY (id);


--
-- Name: session session_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);


--
-- Name: session session_token_key; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_token_key UNIQUE (token);


--
-- Name: user user_email_key; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."user"
    ADD CONSTRAINT user_email_key UNIQUE (email);


--
-- Name: user user_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public."user"
    ADD CONSTRAINT user_pkey PRIMARY KEY (id);


--
-- Name: verification verification_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.verification
    ADD CONSTRAINT verification_pkey PRIMARY KEY (id);


--
-- Name: account_userId_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "account_userId_idx" ON public.account USING btree ("userId");


--
-- Name: apikey_configId_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "apikey_configId_idx" ON public.apikey USING btree ("configId");


--
-- Name: apikey_key_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX apikey_key_idx ON public.apikey USING btree (key);


--
-- Name: apikey_referenceId_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "apikey_referenceId_idx" ON public.apikey USING btree ("referenceId");


--
-- Name: session_userId_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX "session_userId_idx" ON public.session USING btree ("userId");


--
-- Name: verification_identifier_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX verification_identifier_idx ON public.verification USING btree (identifier);


--
-- Name: account account_userId_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.account
    ADD CONSTRAINT "account_userId_fkey" FOREIGN KEY ("userId") REFERENCES public."user"(id) ON DELETE CASCADE;


--
-- Name: session session_userId_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.session
    ADD CONSTRAINT "session_userId_fkey" FOREIGN KEY ("userId") REFERENCES public."user"(id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--

\unrestrict oJd3K7pmTC8hAandjy7WdGHdd6EECPfwBpmkZedbGwA2dPIWSbWRPdz3kl23hNv

