//! onceonly on MySQL and MariaDB, with mysql_async
