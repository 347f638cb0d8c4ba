//! All objects as a graph: vertices, and the references between them. [`super::walk`] finds it.

use super::damage::too_many_objects;
use super::wrong::Wrong;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled, with_room};

/// The number of a vertex. 0 is none, 1 holds all roots.
pub type Vertex = u32;
pub const TOP: Vertex = 1;
/// The object of a vertex that has none: the top, and roots.
pub const NONE: u32 = u32::MAX;

/// Where an object is, as 32 bits: in two bits the kind, in the others a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Unreached,
    Vertex(Vertex),
    /// Without references of its own, held by this vertex only.
    Leaf(Vertex),
    /// Without references of its own, with several holders. The number of the row in [`Graph::shared`].
    Shared(u32),
    /// It belongs to a root that was not reached yet, or just now.
    Reserved,
}

const BITS: u32 = 30;
/// More than the highest number of a vertex, and of a row of shared objects.
pub const MOST: u32 = 1 << BITS;

impl Place {
    pub const UNREACHED: Place = Place(0);
    pub const RESERVED: Place = Place(3 << BITS);
    /// It was reached, but what else refers to it does not matter.
    pub const TAKEN: Place = Place(3 << BITS | 1);

    #[inline]
    pub fn kind(self) -> Kind {
        let number = self.0 % MOST;
        match self.0 >> BITS {
            0 if number == 0 => Kind::Unreached,
            0 => Kind::Vertex(number),
            1 => Kind::Leaf(number),
            2 => Kind::Shared(number),
            _ => Kind::Reserved,
        }
    }

    #[inline]
    pub fn vertex(vertex: Vertex) -> Place {
        Place(vertex)
    }

    #[inline]
    pub fn leaf(holder: Vertex) -> Place {
        Place(1 << BITS | holder)
    }

    #[inline]
    pub fn shared(row: u32) -> Place {
        Place(2 << BITS | row)
    }
}

/// Two numbers in one, so that they are sorted by the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge(u64);

impl Edge {
    #[inline]
    pub fn new(to: u32, from: Vertex) -> Edge {
        Edge(u64::from(to) << 32 | u64::from(from))
    }

    #[inline]
    pub fn to(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub fn from(self) -> Vertex {
        self.0 as u32
    }
}

/// The holders of what has several of them. A holder takes half as much memory as an [`Edge`].
pub struct Holders {
    /// What is held, in ascending order, and where its holders start.
    starts: Vec<(u32, u32)>,
    holders: Vec<Vertex>,
}

impl Holders {
    /// `first` is one more holder, which is before the others.
    pub fn new(mut edges: Vec<Edge>, first: impl Fn(u32) -> Option<Vertex>) -> Result<Holders> {
        edges.sort_unstable();
        let groups = || edges.chunk_by(|one, other| one.to() == other.to());
        let count = groups().count();
        let mut starts = with_room(count)?;
        let mut holders = with_room(edges.len() + count)?;
        for group in groups() {
            let start = u32::try_from(holders.len()).map_err(|_| too_many_objects())?;
            let to = group.first().map_or(0, |edge| edge.to());
            starts.try_push((to, start))?;
            holders.try_extend_from(first(to).into_iter())?;
            holders.try_extend_from(group.iter().map(|edge| edge.from()))?;
        }
        Ok(Holders { starts, holders })
    }

    /// The holders of one; none if it does not have several.
    pub fn of(&self, to: u32) -> &[Vertex] {
        let row = self.starts.binary_search_by_key(&to, |start| start.0);
        row.map_or(&[], |row| self.row(row))
    }

    /// All that have several holders, and these.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = (u32, &[Vertex])> {
        let rows = self.starts.iter().enumerate();
        rows.map(|(row, start)| (start.0, self.row(row)))
    }

    fn row(&self, row: usize) -> &[Vertex] {
        let start = |row| {
            self.starts
                .get(row)
                .map(|start: &(u32, u32)| start.1 as usize)
        };
        let end = start(row + 1).unwrap_or(self.holders.len());
        let start = start(row).unwrap_or(end);
        self.holders.get(start..end).unwrap_or_default()
    }
}

/// What was found by the walk.
pub struct Graph {
    /// For each object.
    pub places: Vec<Place>,
    /// The number of vertices, with 0.
    pub count: usize,
    /// The holders of vertices, of the same phase: first the one from which the vertex was found, then the others in
    /// ascending order.
    pub holders: Holders,
    /// The holders of shared leaves, in ascending order.
    pub shared: Holders,
    /// The vertices of the roots, in ascending order.
    pub roots: Vec<(Vertex, usize)>,
    /// The first vertex of objects that nothing holds.
    pub unheld: Vertex,
    /// References of objects that are held, which are not addresses of objects.
    pub wrong: Wrong,
}

impl Graph {
    /// The object of each vertex.
    pub fn objects(&self) -> Result<Vec<u32>> {
        let mut objects = filled(self.count, NONE)?;
        for (object, place) in self.places.iter().enumerate() {
            if let Kind::Vertex(vertex) = place.kind() {
                objects[vertex as usize] = object as u32;
            }
        }
        Ok(objects)
    }
}
