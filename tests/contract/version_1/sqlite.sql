PRAGMA application_id = 1818848875;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO "collections" VALUES(1,'C');
INSERT INTO "collections" VALUES(2,'D');
CREATE TABLE host_memory (
    host TEXT NOT NULL UNIQUE,
    head_useless_since REAL,
    last_end REAL,
    failing_since REAL,
    pace TEXT NOT NULL,
    robots TEXT NOT NULL
) STRICT;
INSERT INTO "host_memory" VALUES('a.example',NULL,1790000005.0,NULL,'{"floor":1}','{}');
CREATE TABLE hosts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO "hosts" VALUES(1,'a.example');
CREATE TABLE link_collections (
    link_id INTEGER NOT NULL,
    collection_id INTEGER NOT NULL,
    PRIMARY KEY (link_id, collection_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "link_collections" VALUES(1,1);
INSERT INTO "link_collections" VALUES(2,1);
INSERT INTO "link_collections" VALUES(3,1);
INSERT INTO "link_collections" VALUES(4,1);
INSERT INTO "link_collections" VALUES(5,2);
INSERT INTO "link_collections" VALUES(6,2);
CREATE TABLE link_providers (
    link_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    PRIMARY KEY (link_id, provider_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "link_providers" VALUES(1,1);
INSERT INTO "link_providers" VALUES(2,1);
INSERT INTO "link_providers" VALUES(3,1);
INSERT INTO "link_providers" VALUES(4,1);
INSERT INTO "link_providers" VALUES(5,1);
INSERT INTO "link_providers" VALUES(6,1);
CREATE TABLE links (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    url TEXT NOT NULL,
    host_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    expected_mime TEXT,
    next_check_at REAL NOT NULL DEFAULT 0,
    last_checked_at REAL,
    last_record_id INTEGER,
    last_category TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    interval REAL NOT NULL DEFAULT 0,
    hard_since REAL,
    hard_count INTEGER NOT NULL DEFAULT 0,
    hard_by_get INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO "links" VALUES(1,X'00000000000000000000000000000001','https://a.example/1',1,1,'text/html',1791607200.0,1790700000.0,2,'Ok',0,907200.0,NULL,0,0);
INSERT INTO "links" VALUES(2,X'00000000000000000000000000000002','https://a.example/2',1,0,'text/html',1790086401.5,1790000001.5,3,'Broken',1,86400.0,1790000001.5,1,0);
INSERT INTO "links" VALUES(3,X'00000000000000000000000000000003','https://a.example/3',1,1,'text/html',1790021602.0,1790000002.0,4,'Undetermined',1,21600.0,NULL,0,0);
INSERT INTO "links" VALUES(4,X'00000000000000000000000000000004','https://a.example/4',1,0,'text/html',1790634800.0,1790030000.0,6,'Ok',0,604800.0,NULL,0,0);
INSERT INTO "links" VALUES(5,X'00000000000000000000000000000005','https://a.example/5',1,1,'text/html',0.0,NULL,NULL,NULL,0,0.0,NULL,0,0);
INSERT INTO "links" VALUES(6,X'00000000000000000000000000000006','https://a.example/6',1,0,'text/html',1792592004.0,1790000004.0,7,'Restricted_Access',1,2592000.0,NULL,0,0);
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE orders (
    host TEXT NOT NULL PRIMARY KEY,
    act TEXT NOT NULL,
    at REAL NOT NULL,
    reason TEXT NOT NULL,
    until REAL
) STRICT;
INSERT INTO "orders" VALUES('b.example','block',1790000000.0,'too slow',NULL);
CREATE TABLE providers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO "providers" VALUES(1,'P');
CREATE TABLE proxies (
    link_id INTEGER NOT NULL,
    collection_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    record TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    expected_mime TEXT NOT NULL,
    extra TEXT,
    PRIMARY KEY (link_id, collection_id, provider_id, record, resource_type, expected_mime)
) STRICT, WITHOUT ROWID;
INSERT INTO "proxies" VALUES(1,1,1,'r1','','text/html','{"colour":"red"}');
INSERT INTO "proxies" VALUES(2,1,1,'r2','','text/html','{"colour":"red"}');
INSERT INTO "proxies" VALUES(3,1,1,'r3','','text/html','{"colour":"red"}');
INSERT INTO "proxies" VALUES(4,1,1,'r4','','text/html','{"colour":"red"}');
INSERT INTO "proxies" VALUES(5,2,1,'r5','','text/html','{"colour":"red"}');
INSERT INTO "proxies" VALUES(6,2,1,'r6','','text/html','{"colour":"red"}');
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    link_id INTEGER NOT NULL REFERENCES links (id),
    checked_at REAL NOT NULL,
    category TEXT NOT NULL,
    reason TEXT NOT NULL,
    confirmed INTEGER NOT NULL,
    status INTEGER,
    method TEXT,
    redirects INTEGER NOT NULL,
    final_url TEXT,
    timeout INTEGER NOT NULL,
    duration_ms INTEGER,
    expected_mime TEXT,
    mime TEXT,
    mime_matches INTEGER,
    content_length INTEGER,
    error TEXT,
    attempt INTEGER NOT NULL,
    next_check_at REAL NOT NULL,
    crawler TEXT NOT NULL,
    collections TEXT NOT NULL,
    hops TEXT NOT NULL,
    UNIQUE (link_id, checked_at)
) STRICT;
INSERT INTO "records" VALUES(1,1,1790000000.0,'Ok','ok',1,200,'HEAD',0,'https://a.example/1',0,7,'text/html','text/html',1,NULL,NULL,0,1790604800.0,'linkcrawl/0.1.0 00000000','["C"]','[{"url":"https://a.example/1","method":"HEAD","status":200,"duration_ms":7,"ip":"192.0.2.1","at":1789999999.993}]');
INSERT INTO "records" VALUES(2,1,1790700000.0,'Ok','ok',1,200,'HEAD',0,'https://a.example/1',0,7,'text/html','text/html',1,1099511627776,NULL,0,1791607200.0,'linkcrawl/0.1.0 00000000','["C"]','[{"url":"https://a.example/1","method":"HEAD","status":200,"duration_ms":7,"ip":"192.0.2.1","at":1790699999.993}]');
INSERT INTO "records" VALUES(3,2,1790000001.5,'Broken','http_404',0,404,'HEAD',0,'https://a.example/2',0,7,'text/html','text/html',NULL,NULL,'The server has nothing at this URL.',1,1790086401.5,'linkcrawl/0.1.0 00000000','["C"]','[{"url":"https://a.example/2","method":"HEAD","status":200,"duration_ms":7,"ip":"192.0.2.1","at":1790000001.493}]');
INSERT INTO "records" VALUES(4,3,1790000002.0,'Undetermined','parked',1,NULL,NULL,0,NULL,0,NULL,'text/html',NULL,NULL,NULL,'3 workers died over it',1,1790021602.0,'linkcrawl/0.1.0 00000000','["C"]','[]');
INSERT INTO "records" VALUES(5,4,1790000003.0,'Undetermined','parked',1,NULL,NULL,0,NULL,0,NULL,'text/html',NULL,NULL,NULL,'3 workers died over it',1,1790021603.0,'linkcrawl/0.1.0 00000000','["C"]','[]');
INSERT INTO "records" VALUES(6,4,1790030000.0,'Ok','ok',1,200,'HEAD',0,'https://a.example/4',0,7,'text/html','text/html',1,NULL,NULL,0,1790634800.0,'linkcrawl/0.1.0 00000000','["C"]','[{"url":"https://a.example/4","method":"HEAD","status":200,"duration_ms":7,"ip":"192.0.2.1","at":1790029999.993}]');
INSERT INTO "records" VALUES(7,6,1790000004.0,'Restricted_Access','http_403',1,403,'HEAD',0,'https://a.example/6',0,7,'text/html','text/html',NULL,NULL,'The server does not give us the resource.',1,1792592004.0,'linkcrawl/0.1.0 00000000','["D"]','[{"url":"https://a.example/6","method":"HEAD","status":200,"duration_ms":7,"ip":"192.0.2.1","at":1790000003.993}]');
CREATE INDEX links_by_turn ON links (host_id, priority, next_check_at, id, last_checked_at);
CREATE INDEX links_by_time ON links (next_check_at);
CREATE INDEX links_of_collection ON link_collections (collection_id, link_id);
CREATE INDEX records_by_time ON records (checked_at);
COMMIT;
