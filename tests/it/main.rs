//! The tests of the whole program, in one binary since linking thirty takes minutes. Each file is
//! one subject: `cargo test --test it follow` runs `follow.rs` (and every test with that word in
//! its path).
//!
//! A test that must own its process has a binary of its own: `tests/allocations.rs` replaces the
//! allocator. So has `tests/live.rs`, which is built again for a feature.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod answers;
mod capture_tshark;
mod checksums;
mod common;
mod config;
mod cut;
mod cut_worlds;
mod damaged;
mod diagnose;
mod diff;
mod diff_unread;
mod encode;
mod encode_changes;
mod encode_values;
mod export_chat;
mod export_files;
mod export_vault;
mod exported_messages;
mod faults;
mod filters;
mod flow_tshark;
mod follow;
mod foreign;
mod hostile;
mod hostile_cases;
mod hostile_commands;
mod hostile_keys;
mod hostile_text;
mod inputs;
mod intermud3;
mod intermud3_senders;
mod joined_anywhere;
mod key_options;
mod keys;
mod keys_damage;
mod late_join;
mod layers;
mod layers_cycles;
mod layers_docs;
mod layers_programs;
mod library;
mod limits;
mod lists;
mod lua_tshark;
mod made;
mod markers;
#[path = "../../benches/material/mod.rs"]
mod material;
mod moul_damage;
mod moul_forms;
mod names;
mod network;
mod one_line;
mod oneline;
mod order;
mod ouro;
mod ouro_services;
mod outputs;
mod own_protocols;
mod own_protocols_tshark;
mod pictures;
mod plasma;
mod progress;
mod pseudonyms;
mod replies;
mod report;
mod schema;
mod secondlife;
mod secondlife_http;
mod session_ends;
mod sessions;
mod split;
mod stats;
mod stories;
mod table_limits;
mod tables;
mod tables_damage;
mod tail;
mod threads;
mod told;
mod transcripts;
mod truth;
mod tunnels;
mod usage;
