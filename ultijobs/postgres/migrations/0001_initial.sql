-- compatible-from: 1
-- Every name is written as {schema}.name and rendered once. Columns that claims, renewals and settlements
-- change stand first and together, so that a new row version shares its page and WAL holds only the changed middle.

create sequence {schema}.x_lease_no;

create table {schema}.x_schema (
  version         int         primary key,
  compatible_from int         not null,
  library         text        not null,
  applied_at      timestamptz not null default now(),
  -- The first row's is the schema's; a copy of the database has the same.
  identity        uuid        not null default gen_random_uuid()
);

create table {schema}.x_jobs (
  run_at          timestamptz not null default now(),
  lease_no        bigint      not null default 0,
  lease_until     timestamptz,
  started_at      timestamptz,
  finished_at     timestamptz,
  updated_at      timestamptz not null default now(),
  attempt         int         not null default 0,
  claims          int         not null default 0,
  key_held        boolean     not null default true,
  state           text collate "C" not null default 'ready',
  worker_id       text collate "C",
  stop_reason     text collate "C",
  error_code      text collate "C",
  fingerprint     text collate "C",
  running_step    text collate "C",
  abandoned       text collate "C",
  behind          uuid,
  woken           bigint,
  progress        json,
  cancel_reason   text,
  last_error      text,
  due_at          timestamptz not null default now(),
  created_at      timestamptz not null default now(),
  id              uuid        not null primary key,
  run_id          uuid        not null,
  max_attempts    int         not null default 3,
  priority        int         not null default 0,
  name            text collate "C" not null,
  queue           text collate "C" not null default 'default',
  tenant_id       text collate "C",
  lane            text collate "C" not null default '',
  unique_mode     text collate "C" not null default 'live',
  idempotency_key text collate "C",
  enqueued_by     text,
  traceparent     text,
  code_version    text collate "C",
  input           json        not null default 'null'
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create index x_jobs_claim on {schema}.x_jobs (queue, lane, (-priority), run_at, id)
  where state in ('ready', 'suspended') and behind is null;
create unique index x_jobs_key on {schema}.x_jobs (name, (coalesce(tenant_id, '') collate "C"), idempotency_key)
  where key_held and state in ('ready', 'running', 'suspended') and idempotency_key is not null;
create index x_jobs_released on {schema}.x_jobs (name, (coalesce(tenant_id, '') collate "C"), idempotency_key)
  where not key_held and state in ('ready', 'running', 'suspended') and idempotency_key is not null;
create index x_jobs_running on {schema}.x_jobs (name, id) where state = 'running';
create index x_jobs_stopped on {schema}.x_jobs (finished_at, id) include (queue, state, tenant_id)
  where state in ('dead', 'failed');
create index x_jobs_cause on {schema}.x_jobs (stop_reason, fingerprint, finished_at) where state in ('dead', 'failed');
create index x_jobs_retried on {schema}.x_jobs (fingerprint)
  where fingerprint is not null and state in ('ready', 'running', 'suspended');
create index x_jobs_suspended on {schema}.x_jobs (queue, run_at) where state = 'suspended' and behind is null;
create index x_jobs_written on {schema}.x_jobs (id) where state = 'delayed';
create index x_jobs_behind on {schema}.x_jobs (behind) where behind is not null;

-- What ended well, by day of its end; insert only, dropped by the day.
create table {schema}.x_jobs_done (like {schema}.x_jobs including defaults) partition by range (finished_at);
create index x_jobs_done_id on {schema}.x_jobs_done (id);
create index x_jobs_done_cancelled on {schema}.x_jobs_done (id) where state = 'cancelled';
create index x_jobs_done_finished on {schema}.x_jobs_done using brin (finished_at);
create table {schema}.x_jobs_done_default partition of {schema}.x_jobs_done default;

create view {schema}.x_jobs_all as
select id, run_id, name, queue,
       case when state = 'ready' and run_at > now() then 'delayed' else state end as state,
       attempt, max_attempts, priority, idempotency_key, tenant_id, input, run_at, due_at, created_at, updated_at, finished_at,
       lease_no, lease_until, worker_id, last_error, error_code, fingerprint, stop_reason, cancel_reason, traceparent, enqueued_by,
       code_version
  from {schema}.x_jobs
union all
select id, run_id, name, queue, state,
       attempt, max_attempts, priority, idempotency_key, tenant_id, input, run_at, due_at, created_at, updated_at, finished_at,
       lease_no, lease_until, worker_id, last_error, error_code, fingerprint, stop_reason, cancel_reason, traceparent, enqueued_by,
       code_version
  from {schema}.x_jobs_done;

create table {schema}.x_job_steps (
  run_id       uuid   not null,
  name         text collate "C" not null,
  kind         text collate "C" not null default 'run',
  status       text collate "C" not null,
  position     int    not null,
  tries        int    not null default 1,
  lease_no     bigint not null,
  started_at   timestamptz not null default now(),
  completed_at timestamptz,
  wake_at      timestamptz,
  event        text collate "C",
  match        text collate "C",
  event_id     uuid,
  error        text,
  output       json,
  primary key (run_id, name)
);
create index x_job_steps_waiting on {schema}.x_job_steps (event, match) where status = 'waiting';
create unique index x_job_steps_event on {schema}.x_job_steps (run_id, event_id) where event_id is not null;

create table {schema}.x_job_attempts (
  run_id     uuid   not null,
  job_id     uuid   not null,
  lease_no   bigint not null,
  attempt    int    not null,
  worker_id  text collate "C",
  outcome    text collate "C" not null,
  started_at timestamptz,
  ended_at   timestamptz not null default now(),
  error_code text collate "C",
  error      text,
  traceback  text,
  primary key (run_id, lease_no)
);

create table {schema}.x_job_events (
  id           uuid primary key,
  name         text collate "C" not null,
  key          text collate "C",
  payload      json not null default 'null',
  published_at timestamptz not null default now(),
  expires_at   timestamptz not null,
  delivered    boolean not null default false,
  published_by text
);
create index x_job_events_key on {schema}.x_job_events (name, key, published_at, id);
create index x_job_events_name on {schema}.x_job_events (name, published_at, id);
create index x_job_events_new on {schema}.x_job_events (id) where not delivered;
create index x_job_events_expires on {schema}.x_job_events (expires_at);

create table {schema}.x_job_slots (
  lane       text collate "C" not null,
  slot       int    not null,
  job_id     uuid,
  lease_no   bigint,
  expires_at timestamptz,
  primary key (lane, slot)
) with (fillfactor = 50);
create index x_job_slots_held on {schema}.x_job_slots (job_id) where job_id is not null;

create table {schema}.x_outbox (
  id              uuid primary key,
  run_id          uuid not null,
  position        bigint generated always as identity,
  tx_id           xid8 not null default pg_current_xact_id(),
  kind            text collate "C" not null default 'job',
  name            text collate "C" not null,
  queue           text collate "C" not null default 'default',
  tenant_id       text collate "C",
  lane            text collate "C" not null default '',
  unique_mode     text collate "C" not null default 'live',
  idempotency_key text collate "C",
  max_attempts    int  not null default 3,
  priority        int  not null default 0,
  run_at          timestamptz,
  delay_ms        bigint,
  enqueued_by     text,
  traceparent     text,
  code_version    text collate "C",
  event_key       text collate "C",
  ttl             interval,
  input           json not null default 'null',
  staged_at       timestamptz not null default now(),
  published_at    timestamptz,
  claimed_at      timestamptz,
  claimed_by      text collate "C",
  claim_no        bigint not null default 0,
  attempts        int  not null default 0,
  next_at         timestamptz,
  last_error      text,
  set_aside_at    timestamptz,
  held_by         uuid,
  job_id          uuid
);
create index x_outbox_staged on {schema}.x_outbox (tx_id, position) where published_at is null and set_aside_at is null;
create index x_outbox_aside on {schema}.x_outbox (set_aside_at) where set_aside_at is not null;
create index x_outbox_published on {schema}.x_outbox (published_at) where published_at is not null;

create table {schema}.x_backfills (
  run_id       uuid primary key,
  job_id       uuid not null,
  name         text collate "C" not null,
  status       text collate "C" not null,
  checksum     text collate "C" not null,
  app_version  text,
  environment  text,
  forced       boolean not null default false,
  rows         bigint not null default 0,
  batches      bigint not null default 0,
  sweep        int    not null default 0,
  remaining    bigint,
  counted_at   timestamptz,
  counted_rows bigint not null default 0,
  cursor       json,
  in_hand      bigint not null default 0,
  in_hand_to   json,
  lease_no     bigint not null default 0,
  started_at   timestamptz not null default now(),
  resumed_at   timestamptz not null default now(),
  resumed_rows bigint not null default 0,
  updated_at   timestamptz not null default now(),
  completed_at timestamptz
);
create index x_backfills_name on {schema}.x_backfills (name, started_at);

create table {schema}.x_scheduler_state (
  task       text collate "C" primary key,
  cron       text not null,
  tz         text not null,
  watermark  timestamptz not null,
  owner      text collate "C" not null default '',
  armed_at   timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  last_fired timestamptz,
  retired_at timestamptz,
  last_error text
);

-- One leader for each set of tasks that an application declares; `scope` tells the sets apart.
create table {schema}.x_scheduler_leader (
  key         text collate "C" not null,
  scope       text collate "C" not null default '',
  holder      text collate "C" not null,
  term        bigint not null default 1,
  lease_until timestamptz not null,
  primary key (key, scope)
);

create table {schema}.x_schedule_slots (
  task       text collate "C" not null,
  occurrence timestamptz not null,
  outcome    text collate "C" not null,
  reason     text,
  through    timestamptz,
  slots      bigint not null default 1,
  job_ids    uuid[] not null default '{}',
  term       bigint,
  decided_at timestamptz not null default now(),
  primary key (task, occurrence)
);
create index x_schedule_slots_occurrence on {schema}.x_schedule_slots (occurrence);

create table {schema}.x_workers (
  instance     uuid primary key,
  heartbeat_at timestamptz not null default now(),
  claimed_at   timestamptz,
  settled_at   timestamptz,
  stopped_at   timestamptz,
  state        text collate "C" not null,
  control      text collate "C" not null default 'none',
  wedged       boolean not null default false,
  listening    boolean not null default true,
  free_slots   int not null,
  running      int not null,
  loop_lag_ms  int not null default 0,
  rss_bytes    bigint not null default 0,
  lease_ms     int not null default 30000,
  counters     json not null default '{}',
  full_queues  text[] not null default '{}',
  limited      json not null default '{}',
  worker_id    text collate "C" not null,
  host         text not null,
  pid          int  not null,
  version      text not null,
  code_version text collate "C",
  environment  text,
  queues       text[] not null,
  names        text[] not null,
  concurrency  int  not null,
  started_at   timestamptz not null default now()
) with (fillfactor = 50);
create index x_workers_id on {schema}.x_workers (worker_id);

create table {schema}.x_queues (
  queue        text collate "C" primary key,
  paused_at    timestamptz,
  paused_by    text,
  pause_reason text,
  resume_at    timestamptz
);

create table {schema}.x_catalog (
  kind         text collate "C" not null,
  name         text collate "C" not null,
  queue        text collate "C",
  declaration  json not null,
  code_version text collate "C",
  environment  text,
  last_seen    timestamptz not null default now(),
  primary key (kind, name)
);

create table {schema}.x_activity (
  id          uuid primary key,
  at          timestamptz not null default now(),
  actor       text not null,
  source      text not null,
  action      text not null,
  target      text not null,
  reason      text,
  as_of       timestamptz,
  matched     int,
  done        int,
  refused     int,
  failed      int,
  finished_at timestamptz,
  equivalent  text,
  detail      json not null default '{}'
);
create index x_activity_at on {schema}.x_activity (at);

-- What the last retry or cancel of a job found, so that it can be taken back until something has come of it.
create table {schema}.x_undo (
  job_id        uuid primary key,
  act           uuid not null,
  kind          text collate "C" not null,
  at            timestamptz not null default now(),
  dropped       int  not null default 0,
  lease_no      bigint not null,
  state         text collate "C" not null,
  attempt       int  not null,
  key_held      boolean not null,
  run_at        timestamptz not null,
  due_at        timestamptz not null,
  started_at    timestamptz,
  finished_at   timestamptz,
  worker_id     text collate "C",
  stop_reason   text collate "C",
  cancel_reason text,
  progress      json
);
create index x_undo_act on {schema}.x_undo (act, job_id);
create index x_undo_at on {schema}.x_undo (at);

-- History's days are made and dropped by functions that the migrating role owns, so that a worker needs no DDL rights.
create function {schema}.x_history_ahead(days int) returns int
language plpgsql security definer set search_path = pg_catalog as $ultijobs$
declare
  made int := 0;
  today date := (now() at time zone 'UTC')::date;
  day_ date;
  part text;
begin
  for i in 0 .. days loop
    day_ := today + i;
    part := 'x_jobs_done_' || to_char(day_, 'YYYYMMDD');
    if to_regclass(format('%I.%I', '{schema_name}', part)) is null then
      begin
        perform set_config('lock_timeout', '100ms', true);
        execute format('create table %I.%I partition of %I.x_jobs_done for values from (%L) to (%L)',
                       '{schema_name}', part, '{schema_name}', day_::timestamp at time zone 'UTC', (day_ + 1)::timestamp at time zone 'UTC');
        made := made + 1;
      exception when lock_not_available or check_violation or duplicate_table or invalid_object_definition then
        null;
      end;
    end if;
  end loop;
  return made;
end $ultijobs$;
revoke all on function {schema}.x_history_ahead(int) from public;

-- Takes the oldest day before `before` out of history, or names one that was taken out and not swept yet. It waits for a
-- moment only, and answers null then: while it waits, whoever finishes a job waits behind it.
create function {schema}.x_history_detach(before date) returns text
language plpgsql security definer set search_path = pg_catalog set lock_timeout = '100ms' as $ultijobs$
declare
  part text;
  attached boolean;
begin
  select c.relname, i.inhrelid is not null into part, attached
    from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
   where n.nspname = '{schema_name}' and c.relkind = 'r' and c.relname ~ '^x_jobs_done_[0-9]{8}$'
     and (i.inhrelid is null or c.relname < 'x_jobs_done_' || to_char(before, 'YYYYMMDD'))
   order by i.inhrelid is not null, c.relname limit 1;
  if attached then
    execute format('alter table %I.x_jobs_done detach partition %I.%I', '{schema_name}', '{schema_name}', part);
  end if;
  return part;
exception when lock_not_available or undefined_table then
  return null;
end $ultijobs$;
revoke all on function {schema}.x_history_detach(date) from public;

-- Removes the steps and attempts of some blocks' runs of a day that was taken out; after the last block, the day itself,
-- unless somebody reads it. Of two that sweep one day at once, the second leaves it to the first.
create function {schema}.x_history_sweep(part text, first_block bigint, blocks int,
                                         out done bigint, out cancelled bigint, out stands text)
language plpgsql security definer set search_path = pg_catalog as $ultijobs$
declare
  day_ regclass := to_regclass(format('%I.%I', '{schema_name}', part));
begin
  done := 0; cancelled := 0; stands := 'gone';
  if day_ is null then
    return;
  end if;
  if part !~ '^x_jobs_done_[0-9]{8}$' or exists (select from pg_inherits i where i.inhrelid = day_) then
    raise exception '% is no day that was taken out of history', part;
  end if;
  execute format('lock table %I.%I in share update exclusive mode nowait', '{schema_name}', part);
  execute format($sweep$
    with gone as materialized (select d.run_id, d.state from %1$I.%2$I d where d.ctid >= %3$L::tid and d.ctid < %4$L::tid),
    steps as (delete from %1$I.x_job_steps s where s.run_id = any(array(select g.run_id from gone g))),
    attempts as (delete from %1$I.x_job_attempts a where a.run_id = any(array(select g.run_id from gone g)))
    select count(*) filter (where g.state = 'done'), count(*) filter (where g.state = 'cancelled') from gone g
    $sweep$, '{schema_name}', part, format('(%s,0)', first_block), format('(%s,0)', first_block + blocks))
    into done, cancelled;
  if (first_block + blocks) * current_setting('block_size')::bigint < pg_relation_size(day_) then
    stands := 'more';
    return;
  end if;
  perform set_config('lock_timeout', '1s', true);
  execute format('drop table %I.%I', '{schema_name}', part);
exception when lock_not_available then
  done := 0; cancelled := 0; stands := 'read';
when undefined_table then
  done := 0; cancelled := 0; stands := 'gone';
end $ultijobs$;
revoke all on function {schema}.x_history_sweep(text, bigint, int) from public;

select {schema}.x_history_ahead(7);
