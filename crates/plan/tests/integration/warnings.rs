//! Warnings of a plan, and thresholds that a queue cannot have.

use weir_plan::Lab;

fn lab(network: &str) -> Result<Lab, String> {
    let text = format!("format = 1\n[run]\nduration = '10 s'\n{network}\n[traffic.a]\n");
    Lab::from_str(&text, "lab.toml", ".".as_ref(), &[]).map_err(|error| error.render(false, 100))
}

fn warnings(network: &str) -> Vec<String> {
    lab(network).unwrap().runs()[0].warnings()
}

#[test]
fn changes_after_the_end_of_a_run_cause_a_warning() {
    let link = "[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n";
    let changes = "schedule = [{ at = '9 s', rate = '5 Mbit/s' }, { at = '10 s', rate = '1 Mbit/s' }, { at = '1 h', delay = '9 ms' }]";
    assert_eq!(
        warnings(&format!("{link}{changes}")),
        ["link down: 2 changes from 10 s on never happen, as the run ends at 10 s"]
    );
    let outages = "outage = [{ at = '9 s', for = '5 s' }, { at = '20 s', for = '1 s' }]";
    assert_eq!(
        warnings(&format!("{link}{outages}")),
        ["link down: 1 outage from 20 s on never happens, as the run ends at 10 s"]
    );
    assert_eq!(warnings(link), [""; 0]);
}

#[test]
fn an_application_that_no_aggregation_point_serves_is_warned_of() {
    let of = |id: u8| {
        let text = format!(
            "format = 1\n[run]\nduration = '10 s'\n[dumbbell]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n\
             [stations.west]\nat = 'left'\nlinks = ['down', 'up']\nkind = 'aggregation-point'\napplication = [{{ id = 1 }}]\n\
             [traffic.a]\ntransport = {{ kind = 'rudp', application = {id} }}\n[traffic.b]\n"
        );
        Lab::from_str(&text, "lab.toml", ".".as_ref(), &[]).unwrap().runs()[0].warnings()
    };
    assert_eq!(of(1), [""; 0]);
    assert_eq!(of(2), ["traffic a: no aggregation point serves application 2"]);
}

#[test]
fn a_red_whose_max_is_below_its_min_is_refused_in_any_unit_and_any_shape() {
    let link = |queue: &str| format!("rate = '12 Mbit/s'\nrtt = '20 ms'\nqueue = {queue}");
    let dumbbell = |queue: &str| lab(&format!("[dumbbell]\n{}", link(queue)));
    let refused = |result: Result<Lab, String>| {
        let error = result.unwrap_err();
        assert!(error.contains("max is below min"), "{error}");
        error
    };
    let error = refused(dumbbell("{ kind = 'red', min = '50 packets', max = '5 packets' }"));
    assert!(error.contains("50 packets on this link") && error.contains("lab.toml:7:"), "{error}");
    // 20 ms at 12 Mbit/s are 20 packets of 1500 bytes.
    refused(dumbbell("{ kind = 'red', min = '2 bdp', max = '39 packets' }"));
    refused(dumbbell("{ kind = 'red', min = '20 ms', max = '19 packets' }"));
    refused(dumbbell(
        "{ kind = 'drr', bands = [{ queue = { kind = 'red', min = '9 packets', max = '8 packets' } }] }",
    ));
    let red = link("{ kind = 'red', min = '50 packets', max = '5 packets' }");
    refused(lab(&format!("[chain.links.x]\n{red}")));
    refused(lab(&format!("[parking_lot]\nbottlenecks = 2\n{red}")));
    for queue in
        ["{ kind = 'red', min = '2 bdp', max = '40 packets' }", "{ kind = 'red', min = '20 ms' }", "'red'"]
    {
        dumbbell(queue).unwrap();
    }
}
