//! The settings in which both forms are compared.

/// A controller as a lab file writes it, and the parameters of the C form that are not at their
/// defaults.
pub(crate) type Case = (&'static str, &'static [(&'static str, i64)]);

pub(crate) const CASES: &[Case] = &[
    (r#"{ "kind": "dctcp" }"#, &[]),
    (
        r#"{ "kind": "dctcp", "dctcp_shift_g": 1, "dctcp_alpha_on_init": 0 }"#,
        &[("dctcp_shift_g", 1), ("dctcp_alpha_on_init", 0)],
    ),
    (r#"{ "kind": "dctcp", "alpha_to_zero": false }"#, &[("alpha_to_zero", 0)]),
    (r#"{ "kind": "vegas" }"#, &[]),
    (
        r#"{ "kind": "vegas", "alpha": 10, "beta": 20, "gamma": 5 }"#,
        &[("alpha", 10), ("beta", 20), ("gamma", 5)],
    ),
    (r#"{ "kind": "ledbat" }"#, &[]),
    (
        r#"{ "kind": "ledbat", "target": "25 ms", "gain": 3, "base_history": 5, "current_filter": 4, "slow_start": false }"#,
        &[("target", 25_000), ("gain", 3), ("base_history", 5), ("current_filter", 4), ("slow_start", 0)],
    ),
    (r#"{ "kind": "yield" }"#, &[]),
    (r#"{ "kind": "yield", "reading": "paper" }"#, &[("reading", 0)]),
    (
        r#"{ "kind": "yield", "beta": 60, "trend_factor": 3, "min_cwnd": 1 }"#,
        &[("beta", 60), ("trend_factor", 3), ("min_cwnd", 1)],
    ),
    (r#"{ "kind": "htcp" }"#, &[]),
    (
        r#"{ "kind": "htcp", "use_rtt_scaling": false, "use_bandwidth_switch": false }"#,
        &[("use_rtt_scaling", 0), ("use_bandwidth_switch", 0)],
    ),
    (r#"{ "kind": "prague" }"#, &[]),
    (r#"{ "kind": "prague", "rtt_transition": 5 }"#, &[("rtt_transition", 5)]),
    (r#"{ "kind": "prague", "rtt_scaling": "none" }"#, &[("rtt_scaling", 0)]),
    (
        r#"{ "kind": "prague", "rtt_scaling": "scalable", "rtt_transition": 0 }"#,
        &[("rtt_scaling", 2), ("rtt_transition", 0)],
    ),
    (
        r#"{ "kind": "prague", "rtt_scaling": "additive", "rtt_transition": 3, "rtt_target": "100 ms" }"#,
        &[("rtt_scaling", 3), ("rtt_transition", 3), ("rtt_target", 100_000)],
    ),
    (r#"{ "kind": "nice" }"#, &[]),
    (r#"{ "kind": "nice", "reading": "paper" }"#, &[("reading", 0)]),
    (r#"{ "kind": "nice", "threshold": 100 }"#, &[("threshold", 100)]),
    (
        r#"{ "kind": "nice", "alpha": 2, "beta": 6, "gamma": 2, "threshold": 50, "fraction_divisor": 8, "max_fwnd": 20,
             "counter_bits": 32 }"#,
        &[
            ("alpha", 2),
            ("beta", 6),
            ("gamma", 2),
            ("threshold", 50),
            ("fraction_divisor", 8),
            ("max_fwnd", 20),
            ("counter_bits", 32),
        ],
    ),
    (r#"{ "kind": "lp" }"#, &[]),
    (r#"{ "kind": "lp", "reading": "paper" }"#, &[("reading", 1)]),
    (r#"{ "kind": "lp", "threshold": 40, "inference": 1 }"#, &[("threshold", 40), ("inference", 1)]),
    (r#"{ "kind": "westwood" }"#, &[]),
    (r#"{ "kind": "westwood", "hz": 1000 }"#, &[("hz", 1000)]),
    (r#"{ "kind": "westwood-lp" }"#, &[]),
    (r#"{ "kind": "westwood-lp", "hz": 1000, "beta": 20 }"#, &[("hz", 1000), ("beta", 20)]),
    (r#"{ "kind": "westwood-lp", "reading": "paper" }"#, &[("reading", 0)]),
    (r#"{ "kind": "westwood-lp", "threshold": "2004" }"#, &[("threshold", 0)]),
    (
        r#"{ "kind": "westwood-lp", "reading": "paper", "threshold": "2004", "beta": 12, "hz": 1000 }"#,
        &[("reading", 0), ("threshold", 0), ("beta", 12), ("hz", 1000)],
    ),
    (r#"{ "kind": "ledbat-plus-plus" }"#, &[]),
    (
        r#"{ "kind": "ledbat-plus-plus", "target": "150 ms", "constant": 2, "max_slower": 4, "initial_window": 20, "min_cwnd": 4,
             "base_history": 3, "current_filter": 2 }"#,
        &[
            ("target", 150_000),
            ("constant", 2),
            ("max_slower", 4),
            ("initial_window", 20),
            ("min_cwnd", 4),
            ("base_history", 3),
            ("current_filter", 2),
        ],
    ),
    (r#"{ "kind": "ledbat-plus-plus", "slowdowns": false }"#, &[("slowdowns", 0)]),
    (r#"{ "kind": "apple-ledbat" }"#, &[]),
    (
        r#"{ "kind": "apple-ledbat", "target": "50 ms", "decrease_shift": 1, "md_gate": "rtt", "allowed_increase": 1, "min_cwnd": 5,
             "base_history": 4, "current_filter": 3 }"#,
        &[
            ("target", 50_000),
            ("decrease_shift", 1),
            ("md_gate", 1),
            ("allowed_increase", 1),
            ("min_cwnd", 5),
            ("base_history", 4),
            ("current_filter", 3),
        ],
    ),
    (r#"{ "kind": "cdg" }"#, &[]),
    (
        r#"{ "kind": "cdg", "window": 2, "backoff_beta": 500, "backoff_factor": 3, "use_tolerance": true }"#,
        &[("window", 2), ("backoff_beta", 500), ("backoff_factor", 3), ("use_tolerance", 1)],
    ),
    (
        r#"{ "kind": "cdg", "hystart_detect": "delay", "use_ineff": 0, "use_shadow": false, "backoff_factor": 1 }"#,
        &[("hystart_detect", 1), ("use_ineff", 0), ("use_shadow", 0), ("backoff_factor", 1)],
    ),
    (
        r#"{ "kind": "cdg", "window": 256, "hystart_detect": "ack_train" }"#,
        &[("window", 256), ("hystart_detect", 0)],
    ),
    (r#"{ "kind": "cdg", "hystart": false }"#, &[("hystart", 0)]),
    (r#"{ "kind": "ctcp" }"#, &[]),
    (
        r#"{ "kind": "ctcp", "rate": "100 Mbit/s", "rtt": "40 ms" }"#,
        &[("rate", 100_000_000), ("rtt", 40_000)],
    ),
    (
        r#"{ "kind": "ctcp", "rate": "4 Gbit/s", "rtt": "26 ms", "window_percent": 120, "header_bytes": 52, "pace": true }"#,
        &[
            ("rate", 4_000_000_000),
            ("rtt", 26_000),
            ("window_percent", 120),
            ("header_bytes", 52),
            ("pace", 1),
        ],
    ),
    (
        r#"{ "kind": "ctcp", "rate": "1000 Gbit/s", "rtt": "10 s", "window_percent": 1000, "pace": true, "fall_back": false }"#,
        &[
            ("rate", 1_000_000_000_000),
            ("rtt", 10_000_000),
            ("window_percent", 1000),
            ("pace", 1),
            ("fall_back", 0),
        ],
    ),
];
