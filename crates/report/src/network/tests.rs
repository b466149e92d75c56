use super::network;
use std::path::Path;
use weir_plan::Lab;

fn page(hosts: &str) -> String {
    let text = format!(
        "format = 1\n[dumbbell]\nrate = \"1 Gbit/s\"\nrtt = \"20 ms\"\n[nic.capture]\nrate = \"100 Mbit/s\"\n{hosts}\n\
         [traffic.a]\nflows = 6\nhost = \"capture\"\n"
    );
    let lab = Lab::from_str(&text, "hosts.toml", Path::new("."), &[]).expect("a lab");
    network(&lab.runs().iter().collect::<Vec<_>>())
}

#[test]
fn equal_hosts_are_drawn_and_listed_once() {
    let html = page("hosts = 6");
    assert_eq!(html.matches("<circle").count(), 3, "{html}");
    assert_eq!(html.matches("6 × capture").count(), 2, "the node and its link: {html}");
    assert!(html.contains("<dt>links capture-1 to capture-6</dt><dd>100 Mbit/s"), "{html}");
    assert!(!html.contains("capture-2"), "{html}");
}

#[test]
fn a_single_host_has_its_own_name() {
    let html = page("");
    assert_eq!(html.matches("<circle").count(), 3, "{html}");
    assert!(html.contains(">capture</text>") && html.contains("<dt>link capture</dt>"), "{html}");
}
