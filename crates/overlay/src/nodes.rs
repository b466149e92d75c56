//! Names of nodes, sets of them, and sparse tables with an entry for some of them.
//!
//! Source: digest A 1.1 gives an edge node 5 bits and a network 24 of them. Here a network has 128 nodes, edge or interior, and a
//! set is one 128-bit word: a group's destinations, a packet's receivers and the nodes that it has visited.

/// The most nodes of a network.
pub const NODES: usize = 128;

/// A node's number, 0 to 127.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u8);

impl NodeId {
    /// The node of this number; `None` from 128 on.
    pub const fn new(number: u8) -> Option<NodeId> {
        if (number as usize) < NODES { Some(NodeId(number)) } else { None }
    }
    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }
    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// All nodes that there can be, in order.
    pub fn all() -> impl Iterator<Item = NodeId> {
        (0..NODES as u8).map(NodeId)
    }
}

/// A set of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Nodes(u128);

impl Nodes {
    /// No node.
    pub const EMPTY: Nodes = Nodes(0);

    /// The set with one node.
    pub const fn of(node: NodeId) -> Nodes {
        Nodes(1 << node.0)
    }
    /// The set whose bits these are, the bit of node 0 lowest.
    pub const fn from_bits(bits: u128) -> Nodes {
        Nodes(bits)
    }
    /// The bits, that of node 0 lowest.
    pub const fn bits(self) -> u128 {
        self.0
    }
    /// Whether it has the node.
    #[inline]
    pub const fn has(self, node: NodeId) -> bool {
        self.0 >> node.0 & 1 == 1
    }
    /// The set with the node.
    pub const fn with(self, node: NodeId) -> Nodes {
        Nodes(self.0 | 1 << node.0)
    }
    /// The set without the node.
    pub const fn without(self, node: NodeId) -> Nodes {
        Nodes(self.0 & !(1 << node.0))
    }
    /// The nodes of both sets.
    #[inline]
    pub const fn and(self, other: Nodes) -> Nodes {
        Nodes(self.0 & other.0)
    }
    /// The nodes of either set.
    pub const fn or(self, other: Nodes) -> Nodes {
        Nodes(self.0 | other.0)
    }
    /// The nodes that are not in the other set.
    #[inline]
    pub const fn minus(self, other: Nodes) -> Nodes {
        Nodes(self.0 & !other.0)
    }
    /// Whether there is no node.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The number of nodes.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// How many nodes of the set have a lower number.
    #[inline]
    pub const fn rank(self, node: NodeId) -> usize {
        let (low, high) = (self.0 as u64, (self.0 >> 64) as u64);
        let below = (1 << (node.0 % 64)) - 1;
        // Bits are counted in software on many machines: one word of them where that is enough.
        let count = if node.0 < 64 {
            (low & below).count_ones()
        } else {
            low.count_ones() + (high & below).count_ones()
        };
        count as usize
    }
    /// The node of the lowest number.
    #[inline]
    pub const fn first(self) -> Option<NodeId> {
        if self.0 == 0 { None } else { Some(NodeId(self.0.trailing_zeros() as u8)) }
    }
    /// The nodes by number.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        let mut left = self;
        std::iter::from_fn(move || {
            let node = left.first()?;
            left.0 &= left.0 - 1;
            Some(node)
        })
    }
}

impl FromIterator<NodeId> for Nodes {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Nodes {
        nodes.into_iter().fold(Nodes::EMPTY, Nodes::with)
    }
}

/// Values for some nodes. A value's place is its node's rank among them, so a look-up counts bits, and an entry takes the space of
/// its value alone.
#[derive(Debug, Clone, PartialEq)]
pub struct PerNode<T> {
    nodes: Nodes,
    values: Vec<T>,
}

impl<T> Default for PerNode<T> {
    fn default() -> Self {
        PerNode { nodes: Nodes::EMPTY, values: Vec::new() }
    }
}

impl<T> PerNode<T> {
    /// These nodes, with the values by their numbers; `None` unless each has one.
    pub fn of(nodes: Nodes, values: Vec<T>) -> Option<PerNode<T>> {
        (nodes.len() == values.len()).then_some(PerNode { nodes, values })
    }
    /// The nodes that have a value.
    pub fn nodes(&self) -> Nodes {
        self.nodes
    }
    /// The values, in the order of the nodes' numbers.
    pub fn values(&self) -> &[T] {
        &self.values
    }
    /// The node's value.
    #[inline]
    pub fn get(&self, node: NodeId) -> Option<&T> {
        if self.nodes.has(node) { self.values.get(self.nodes.rank(node)) } else { None }
    }
    /// The node's value, to change.
    #[inline]
    pub fn get_mut(&mut self, node: NodeId) -> Option<&mut T> {
        if self.nodes.has(node) { self.values.get_mut(self.nodes.rank(node)) } else { None }
    }
    /// The node's value; `make` gives the first one.
    pub fn get_or(&mut self, node: NodeId, make: impl FnOnce() -> T) -> &mut T {
        let at = self.nodes.rank(node);
        if !self.nodes.has(node) {
            self.values.insert(at, make());
            self.nodes = self.nodes.with(node);
        }
        &mut self.values[at]
    }
    /// Sets the node's value.
    pub fn set(&mut self, node: NodeId, value: T) {
        let at = self.nodes.rank(node);
        if self.nodes.has(node) {
            self.values[at] = value;
        } else {
            self.values.insert(at, value);
            self.nodes = self.nodes.with(node);
        }
    }
    /// Takes the node's value away.
    pub fn remove(&mut self, node: NodeId) -> Option<T> {
        let had = self.nodes.has(node);
        self.nodes = self.nodes.without(node);
        had.then(|| self.values.remove(self.nodes.rank(node)))
    }
    /// Takes all values away; the space stays.
    pub fn clear(&mut self) {
        self.nodes = Nodes::EMPTY;
        self.values.clear();
    }
    /// The nodes and their values.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.nodes.iter().zip(&self.values)
    }
    /// The nodes and their values, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut T)> {
        self.nodes.iter().zip(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u8) -> NodeId {
        NodeId::new(number).unwrap()
    }

    #[test]
    fn a_network_has_128_nodes() {
        assert_eq!(NodeId::new(127).map(NodeId::number), Some(127));
        assert_eq!(NodeId::new(128), None);
        assert_eq!(NodeId::all().collect::<Nodes>().len(), NODES);
    }

    #[test]
    fn a_set_counts_ranks_and_lists_its_nodes_in_order() {
        let set: Nodes = [127, 3, 64].map(node).into_iter().collect();
        assert_eq!(set.iter().map(NodeId::number).collect::<Vec<_>>(), [3, 64, 127]);
        assert_eq!([0, 3, 64, 127].map(|n| set.rank(node(n))), [0, 0, 1, 2]);
        assert_eq!(set.minus(Nodes::of(node(64))).len(), 2);
    }

    #[test]
    fn a_sparse_table_keeps_each_value_with_its_node() {
        let mut table = PerNode::default();
        for n in [9, 120, 2, 64] {
            *table.get_or(node(n), || 0) += u32::from(n);
        }
        table.set(node(2), 20);
        assert_eq!(table.remove(node(64)), Some(64));
        assert_eq!(table.remove(node(65)), None);
        let all: Vec<(u8, u32)> = table.iter().map(|(n, v)| (n.number(), *v)).collect();
        assert_eq!(all, [(2, 20), (9, 9), (120, 120)]);
    }
}
