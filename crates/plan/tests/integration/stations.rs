//! Stations in lab files: their places, kinds and parameters, all of which a run holds.

use weir_plan::{Lab, Run};

fn run(text: &str) -> Run {
    let text = format!("format = 1\n{text}\n[traffic.a]\ncc = \"cubic\"\n");
    let lab = Lab::from_str(&text, "lab.toml", std::path::Path::new("."), &[]);
    lab.unwrap_or_else(|error| panic!("{error}")).runs().remove(0)
}

const DUMBBELL: &str = "[dumbbell]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";

#[test]
fn a_station_has_a_name_a_node_links_and_a_kind_with_parameters() {
    let text = "[stations.cop]\nat = \"left\"\nlinks = [\"down\"]\nkind = \"policer\"\nrate = \"5 Mbit/s\"\n\
                [stations.box]\nat = \"right\"\nkind = \"bleacher\"";
    let run = run(&format!("{DUMBBELL}{text}"));
    let [cop, bleacher] = &run.stations[..] else { panic!("{:?}", run.stations) };
    assert_eq!((cop.name.as_str(), run.network.nodes[cop.at].name.as_str()), ("cop", "left"));
    let links: Vec<_> = cop.links.iter().map(|&link| run.network.links[link].name.as_str()).collect();
    assert_eq!(links, ["down"]);
    let written = serde_json::to_value(&cop.station).unwrap();
    assert_eq!((&written["kind"], &written["rate"]), (&"policer".into(), &"5 Mbit/s".into()));
    assert_eq!((bleacher.station.name(), bleacher.links.len()), ("ecn-bleacher", 0));
    assert!(run.is_addressed(cop.at) && run.is_addressed(run.groups[0].pairs[0].from));
    let read: Run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
    assert_eq!(read, run);
}

#[test]
fn a_run_without_stations_is_written_as_before() {
    let run = run(DUMBBELL);
    assert!(!serde_json::to_string(&run).unwrap().contains("\"stations\""));
    assert!(!run.is_addressed(0));
}

#[test]
fn a_station_may_stand_at_any_router_of_any_network() {
    let chain = "[chain.links]\na = { rate = \"10 Mbit/s\", delay = \"1 ms\" }\nb = { rate = \"10 Mbit/s\", delay = \"1 ms\" }\n\
                 [stations.middle]\nat = \"n1\"\nlinks = [\"a\", \"b-up\"]\nkind = \"echo\"";
    let run = run(chain);
    let station = &run.stations[0];
    assert_eq!((run.network.nodes[station.at].name.as_str(), station.links.len()), ("n1", 2));
}
