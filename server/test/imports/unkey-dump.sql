/*M!999999\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: unkey
-- ------------------------------------------------------
-- Server version	10.11.19-MariaDB-0+deb12u1

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

--
-- Dumping data for table `apis`
--

LOCK TABLES `apis` WRITE;
/*!40000 ALTER TABLE `apis` DISABLE KEYS */;
INSERT INTO `apis` (`pk`, `id`, `name`, `workspace_id`, `ip_whitelist`, `auth_type`, `key_auth_id`, `created_at_m`, `updated_at_m`, `deleted_at_m`, `delete_protection`) VALUES (1,'api_docs','documents','ws_acme',NULL,'key','ks_docs',1700000000000,NULL,NULL,0),
(2,'api_mail','mail','ws_acme',NULL,'key','ks_mail',1700000000000,NULL,NULL,0);
/*!40000 ALTER TABLE `apis` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `identities`
--

LOCK TABLES `identities` WRITE;
/*!40000 ALTER TABLE `identities` DISABLE KEYS */;
INSERT INTO `identities` (`pk`, `id`, `external_id`, `workspace_id`, `environment`, `meta`, `deleted`, `created_at`, `updated_at`) VALUES (1,'id_1','acme','ws_acme','default','{\"plan\": \"pro\"}',0,1700000000000,NULL);
/*!40000 ALTER TABLE `identities` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `key_auth`
--

LOCK TABLES `key_auth` WRITE;
/*!40000 ALTER TABLE `key_auth` DISABLE KEYS */;
INSERT INTO `key_auth` (`pk`, `id`, `workspace_id`, `created_at_m`, `updated_at_m`, `deleted_at_m`, `store_encrypted_keys`, `default_prefix`, `default_bytes`, `size_approx`, `size_last_updated_at`) VALUES (1,'ks_docs','ws_acme',1700000000000,NULL,NULL,0,NULL,16,0,0),
(2,'ks_mail','ws_acme',1700000000000,NULL,NULL,0,NULL,16,0,0);
/*!40000 ALTER TABLE `key_auth` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `key_migrations`
--

LOCK TABLES `key_migrations` WRITE;
/*!40000 ALTER TABLE `key_migrations` DISABLE KEYS */;
INSERT INTO `key_migrations` (`pk`, `id`, `workspace_id`, `algorithm`) VALUES (1,'mig_old','ws_acme','github.com/seamapi/prefixed-api-key');
/*!40000 ALTER TABLE `key_migrations` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `keys`
--

LOCK TABLES `keys` WRITE;
/*!40000 ALTER TABLE `keys` DISABLE KEYS */;
INSERT INTO `keys` (`pk`, `id`, `key_auth_id`, `hash`, `start`, `workspace_id`, `for_workspace_id`, `name`, `owner_id`, `identity_id`, `meta`, `expires`, `created_at_m`, `updated_at_m`, `deleted_at_m`, `refill_day`, `refill_amount`, `last_refill_at`, `enabled`, `remaining_requests`, `ratelimit_async`, `ratelimit_limit`, `ratelimit_duration`, `environment`, `last_used_at`, `pending_migration_id`) VALUES (1,'key_1','ks_docs','cxQsMax1MoRjsM7AZxm541jvc/dVuI2/1jD4FWIcaEA=','docs_3Zf','ws_acme',NULL,'It\'s \\ \"ci\"\nline',NULL,'id_1','{\"plan\":\"pro\",\"note\":\"a;b),(\\\"c\\\"\"}','2096-01-31 00:00:00.000',1700000000000,NULL,NULL,15,1000,NULL,1,250,NULL,NULL,NULL,NULL,NULL,NULL),
(2,'key_2','ks_docs','uBSxcn6W18c/KVsT4y5FVFXktDDOISHH+svXJBwG72k=','docs_dis','ws_acme',NULL,'disabled','globex',NULL,NULL,NULL,1700000000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,10,60000,'test',NULL,NULL),
(3,'key_3','ks_docs','lH5ydbTJXqggBShQzji4Q59wJwnjhqZQY+dR1VE1O80=','docs_del','ws_acme',NULL,'deleted',NULL,NULL,NULL,NULL,1700000000000,NULL,1700000001000,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL),
(4,'key_4','ks_docs','59HoaV5pOE4WnMgQxrzzQzGQ0LH0qo/0Lp6XM5/uRLU=','','ws_acme',NULL,'pending',NULL,NULL,NULL,NULL,1700000000000,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,'mig_old'),
(5,'key_5','ks_docs','2Fket9c+K5bdaG2IIXLzyHsWVn/GG4pJBBifRpLXwBU=','unkey_','ws_unkey','ws_acme','root',NULL,NULL,NULL,NULL,1700000000000,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL),
(6,'key_6','ks_mail','Ls+Q/9K4ytEbMAyxRYM1ccD8ZBNz+klS2KPwtqHuJrM=','mail_oth','ws_acme',NULL,'other',NULL,NULL,NULL,NULL,1700000000000,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
/*!40000 ALTER TABLE `keys` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `keys_permissions`
--

LOCK TABLES `keys_permissions` WRITE;
/*!40000 ALTER TABLE `keys_permissions` DISABLE KEYS */;
INSERT INTO `keys_permissions` (`pk`, `temp_id`, `key_id`, `permission_id`, `workspace_id`, `created_at_m`, `updated_at_m`) VALUES (1,NULL,'key_1','perm_1','ws_acme',0,NULL);
/*!40000 ALTER TABLE `keys_permissions` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `keys_roles`
--

LOCK TABLES `keys_roles` WRITE;
/*!40000 ALTER TABLE `keys_roles` DISABLE KEYS */;
INSERT INTO `keys_roles` (`pk`, `key_id`, `role_id`, `workspace_id`, `created_at_m`, `updated_at_m`) VALUES (1,'key_1','role_1','ws_acme',0,NULL);
/*!40000 ALTER TABLE `keys_roles` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `permissions`
--

LOCK TABLES `permissions` WRITE;
/*!40000 ALTER TABLE `permissions` DISABLE KEYS */;
INSERT INTO `permissions` (`pk`, `id`, `workspace_id`, `name`, `slug`, `description`, `created_at_m`, `updated_at_m`) VALUES (1,'perm_1','ws_acme','read documents','documents.read',NULL,1700000000000,NULL),
(2,'perm_2','ws_acme','write documents','documents.write',NULL,1700000000000,NULL);
/*!40000 ALTER TABLE `permissions` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `ratelimits`
--

LOCK TABLES `ratelimits` WRITE;
/*!40000 ALTER TABLE `ratelimits` DISABLE KEYS */;
INSERT INTO `ratelimits` (`pk`, `id`, `name`, `workspace_id`, `created_at`, `updated_at`, `key_id`, `identity_id`, `limit`, `duration`, `auto_apply`) VALUES (1,'rl_1','requests','ws_acme',1700000000000,NULL,'key_1',NULL,100,60000,1),
(2,'rl_2','all keys','ws_acme',1700000000000,NULL,NULL,'id_1',500,60000,1);
/*!40000 ALTER TABLE `ratelimits` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `roles`
--

LOCK TABLES `roles` WRITE;
/*!40000 ALTER TABLE `roles` DISABLE KEYS */;
INSERT INTO `roles` (`pk`, `id`, `workspace_id`, `name`, `description`, `created_at_m`, `updated_at_m`) VALUES (1,'role_1','ws_acme','editor',NULL,1700000000000,NULL);
/*!40000 ALTER TABLE `roles` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Dumping data for table `roles_permissions`
--

LOCK TABLES `roles_permissions` WRITE;
/*!40000 ALTER TABLE `roles_permissions` DISABLE KEYS */;
INSERT INTO `roles_permissions` (`pk`, `role_id`, `permission_id`, `workspace_id`, `created_at_m`, `updated_at_m`) VALUES (1,'role_1','perm_2','ws_acme',0,NULL);
/*!40000 ALTER TABLE `roles_permissions` ENABLE KEYS */;
UNLOCK TABLES;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

-- Dump completed on 2026-11-22 11:22:59
