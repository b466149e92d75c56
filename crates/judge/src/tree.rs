//! A small decision tree over the cells' keys: what do cells that differ have in common? Binary splits of least Gini impurity
//! (Breiman and others 1984, CART), at most three deep, with at least five cells in each leaf.

use crate::cell::Value;

/// Greatest depth.
const DEPTH: usize = 3;
/// Fewest cells of a leaf.
const FEWEST: usize = 5;

/// A cell for the tree: its keys, and whether it differs.
#[derive(Debug, Clone)]
pub struct Example {
    /// The cell's keys, the same and in the same order for every cell.
    pub keys: Vec<(String, Value)>,
    /// Whether it differs.
    pub differs: bool,
}

/// A question about a key.
#[derive(Debug, Clone, PartialEq)]
enum Question {
    /// Whether the number is at least this large.
    AtLeast(f64),
    /// Whether it is this name.
    Is(String),
}

/// Cells that share answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The answers, in words.
    pub rule: Vec<String>,
    /// How many of its cells differ.
    pub differ: usize,
    /// How many cells it has.
    pub cells: usize,
}

impl Question {
    fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Question::AtLeast(least), Value::Number(number)) => number >= least,
            (Question::Is(name), Value::Name(value)) => name == value,
            _ => false,
        }
    }

    fn words(&self, key: &str, yes: bool) -> String {
        match (self, yes) {
            (Question::AtLeast(least), true) => format!("{key} is {least} or more"),
            (Question::AtLeast(least), false) => format!("{key} is below {least}"),
            (Question::Is(name), true) => format!("{key}: {name}"),
            (Question::Is(name), false) => format!("{key}: not {name}"),
        }
    }
}

/// The leaves of the tree, those with the largest share of cells that differ first.
pub fn leaves(examples: &[Example]) -> Vec<Leaf> {
    let all: Vec<&Example> = examples.iter().collect();
    let mut leaves = vec![];
    grow(&all, &mut vec![], &mut leaves);
    leaves.sort_by(|a, b| {
        // Shares compared as products: a/b > c/d.
        (b.differ * a.cells.max(1)).cmp(&(a.differ * b.cells.max(1))).then(b.cells.cmp(&a.cells))
    });
    leaves
}

fn grow(examples: &[&Example], rule: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
    let differ = count(examples);
    let split =
        (rule.len() < DEPTH && differ > 0 && differ < examples.len()).then(|| best(examples)).flatten();
    let Some((key, question)) = split else {
        leaves.push(Leaf { rule: rule.clone(), differ, cells: examples.len() });
        return;
    };
    let (yes, no): (Vec<_>, Vec<_>) = examples.iter().partition(|it| question.holds(&it.keys[key].1));
    for (part, answer) in [(yes, true), (no, false)] {
        rule.push(question.words(&examples[0].keys[key].0, answer));
        grow(&part, rule, leaves);
        rule.pop();
    }
}

fn count(examples: &[&Example]) -> usize {
    examples.iter().filter(|it| it.differs).count()
}

/// Gini impurity times the number of cells.
fn impurity(differ: usize, cells: usize) -> f64 {
    let share = differ as f64 / cells.max(1) as f64;
    2.0 * share * (1.0 - share) * cells as f64
}

/// The question that lowers the impurity most, with its key's place; `None` if none does.
fn best(examples: &[&Example]) -> Option<(usize, Question)> {
    let before = impurity(count(examples), examples.len());
    let mut found: Option<(f64, usize, Question)> = None;
    for key in 0..examples[0].keys.len() {
        for question in questions(examples, key) {
            let (yes, no): (Vec<&Example>, Vec<&Example>) =
                examples.iter().copied().partition(|it| question.holds(&it.keys[key].1));
            if yes.len() < FEWEST || no.len() < FEWEST {
                continue;
            }
            let after = impurity(count(&yes), yes.len()) + impurity(count(&no), no.len());
            if after < before - 1e-9 && found.as_ref().is_none_or(|(least, ..)| after < least - 1e-9) {
                found = Some((after, key, question));
            }
        }
    }
    found.map(|(_, key, question)| (key, question))
}

/// All questions that split these cells by a key.
fn questions(examples: &[&Example], key: usize) -> Vec<Question> {
    let (mut numbers, mut names) = (vec![], vec![]);
    for example in examples {
        match &example.keys[key].1 {
            Value::Number(number) => numbers.push(*number),
            Value::Name(name) => names.push(name.clone()),
        }
    }
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    names.sort();
    names.dedup();
    let numbers = numbers.into_iter().skip(1).map(Question::AtLeast);
    numbers.chain(names.into_iter().map(Question::Is)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(rate: f64, cc: &str, differs: bool) -> Example {
        let keys =
            vec![("rate".to_owned(), Value::Number(rate)), ("cc".to_owned(), Value::Name(cc.to_owned()))];
        Example { keys, differs }
    }

    #[test]
    fn the_tree_finds_what_cells_that_differ_have_in_common() {
        // BBR differs from 200 Mbit/s on.
        let examples: Vec<Example> = (0..60)
            .map(|n| {
                let (rate, cc) = (f64::from(n) * 10.0, if n % 2 == 0 { "bbr" } else { "cubic" });
                example(rate, cc, cc == "bbr" && rate >= 200.0)
            })
            .collect();
        let leaves = leaves(&examples);
        let first = &leaves[0];
        assert_eq!((first.differ, first.cells), (20, 20));
        assert_eq!(leaves.iter().map(|leaf| leaf.cells).sum::<usize>(), 60);
        let mut rule = first.rule.clone();
        rule.sort();
        assert_eq!(rule, ["cc: bbr", "rate is 200 or more"]);
    }

    #[test]
    fn leaves_have_at_least_five_cells() {
        let examples: Vec<Example> = (0..20).map(|n| example(f64::from(n), "cubic", n == 3)).collect();
        assert!(leaves(&examples).iter().all(|leaf| leaf.cells >= FEWEST));
        assert_eq!(leaves(&examples[..4]).len(), 1);
    }

    #[test]
    fn nothing_is_split_where_no_cell_differs() {
        let examples: Vec<Example> = (0..20).map(|n| example(f64::from(n), "cubic", false)).collect();
        assert_eq!(leaves(&examples), [Leaf { rule: vec![], differ: 0, cells: 20 }]);
    }
}
