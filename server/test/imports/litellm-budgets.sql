--
-- PostgreSQL database dump
--

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;

COPY public."LiteLLM_BudgetTable" (budget_id, max_budget, soft_budget, max_parallel_requests, tpm_limit, rpm_limit, tpd_limit, model_max_budget, budget_duration, budget_reset_at, allowed_models, temp_budget_increase, temp_budget_expiry, created_at, created_by, updated_at, updated_by) FROM stdin;
budget-org	1000	\N	\N	\N	\N	\N	\N	\N	\N	{}	\N	\N	2026-11-22 14:32:42.641	admin	2026-11-22 14:32:42.641	admin
budget-member	10	8	\N	\N	5	\N	\N	7d	\N	{}	\N	\N	2026-11-22 14:32:42.641	admin	2026-11-22 14:32:42.641	admin
budget-hourly	3	2	\N	\N	9	\N	\N	1h	\N	{}	\N	\N	2026-11-22 14:32:42.641	admin	2026-11-22 14:32:42.641	admin
\.

COPY public."LiteLLM_OrganizationTable" (organization_id, organization_alias, budget_id, metadata, models, spend, model_spend, object_permission_id, created_at, created_by, updated_at, updated_by) FROM stdin;
org-1	Acme	budget-org	{}	{}	400	{}	\N	2026-11-22 14:32:42.641	admin	2026-11-22 14:32:42.641	admin
\.

COPY public."LiteLLM_TeamMembership" (user_id, team_id, spend, total_spend, budget_id) FROM stdin;
user-2	team-search	4	9	budget-member
user-1	team-search	1	1	\N
\.

COPY public."LiteLLM_TeamTable" (team_id, team_alias, organization_id, admins, members, members_with_roles, metadata, max_budget, soft_budget, spend, models, max_parallel_requests, tpm_limit, rpm_limit, tpd_limit, budget_duration, budget_reset_at, blocked, created_at, updated_at) FROM stdin;
team-search	Search	org-1	{}	{}	[]	{}	100	\N	25.5	{gpt-4o}	\N	\N	600	\N	30d	2026-12-01 00:00:00	f	2026-11-22 14:32:42.641	2026-11-22 14:32:42.641
team-free	\N	org-1	{}	{}	[]	{}	\N	\N	0	{}	\N	\N	\N	\N	\N	\N	f	2026-11-22 14:32:42.641	2026-11-22 14:32:42.641
team-quarterly	\N	\N	{}	{}	[]	{}	100	\N	0	{}	\N	\N	\N	\N	90d	\N	f	2026-11-22 14:32:42.641	2026-11-22 14:32:42.641
team-blocked	\N	\N	{}	{}	[]	{}	\N	\N	0	{}	\N	\N	\N	\N	\N	\N	t	2026-11-22 14:32:42.641	2026-11-22 14:32:42.641
\.

COPY public."LiteLLM_UserTable" (user_id, user_alias, team_id, teams, user_role, max_budget, spend, user_email, models, metadata, max_parallel_requests, tpm_limit, rpm_limit, budget_duration, budget_reset_at) FROM stdin;
user-1	Ada	\N	{}	\N	50	60	\N	{}	{}	\N	\N	\N	\N	\N
user-2	\N	\N	{}	\N	1	0	\N	{}	{}	\N	\N	\N	\N	\N
\.

COPY public."LiteLLM_VerificationToken" (token, key_name, key_alias, user_id, team_id, spend, max_budget, budget_duration, tpm_limit, rpm_limit, budget_id, blocked, models, metadata, permissions, created_at, updated_at) FROM stdin;
4c4af68a9ef40221bcf9446c565b2e695939b63e801d2780a59c11b8707ef590	sk-...xxxx	in-team	user-1	team-search	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
b59a27a8af96d1e3ed6fc94aea0145d0b22b778b5e33ead6311a77d35247983a	sk-...xxxx	of-member	user-2	team-search	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
04acceb05b0f7131ee13b37518a30744bf37c4af04900a7449a885ecfe5a3d4a	sk-...xxxx	personal	user-1	\N	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
a40a4a8de7b7db8e6e8b4eb79585ca640112764a48c2d96fc4eeb67fdfe4aa53	sk-...xxxx	in-free-team	\N	team-free	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
691f33a394773bbb41ae9d08867f49ec244c03c34d2fea716f853ace323f4f61	sk-...xxxx	in-quarterly-team	\N	team-quarterly	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
6423190942a47705e7f3387b8a510f16b3215658ecd24aee424d65acc8fc2ebb	sk-...xxxx	own-budget	\N	\N	1.2500004	12.5	1d	1000	60	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
69faf0fdf65e742039ce6ec2ade610482f6cbbf789fd1db41d28c308008f56d1	sk-...xxxx	of-blocked-team	\N	team-blocked	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
7313a2d28f9ffca283c08a9825d12ad7658c597631175227f12fd49a268fea16	sk-...xxxx	of-table	\N	\N	0.5	\N	\N	\N	7	budget-hourly	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
e72b4bb81e04b543be4f4876bd539d1bc2cc415c79d4c41814b857eff4abf56a	sk-...xxxx	negative	\N	\N	0	-1	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
a5607ce0a57b79396b93861c9d1156d0e909e36b41cf9c5cbe2bf90280f70a09	sk-...xxxx	of-lost-team	\N	team-lost	0	\N	\N	\N	\N	\N	\N	{}	{}	{}	2026-11-22 11:28:43.378	2026-11-22 11:28:43.378
\.


--
-- PostgreSQL database dump complete
--

