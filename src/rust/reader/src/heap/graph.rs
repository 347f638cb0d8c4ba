//! All objects as a graph: vertices, and the references between them. [`super::walk`] finds it.

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

/// An object without references that has several holders.
#[derive(Debug, Clone, Copy)]
pub struct Shared {
    /// The first and the last one of its holders so far.
    pub first: Vertex,
    pub last: Vertex,
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

/// What was found by the walk.
pub struct Graph {
    /// For each object.
    pub places: Vec<Place>,
    /// For each vertex: its object, and the vertex from which it was found.
    pub objects: Vec<u32>,
    pub parents: Vec<Vertex>,
    /// All other references between vertices of the same phase, sorted.
    pub edges: Vec<Edge>,
    pub shared: Vec<Shared>,
    /// The holders of shared leaves; the number of the row, and the holder, sorted.
    pub shared_edges: Vec<Edge>,
    /// The vertices of the roots, in ascending order.
    pub roots: Vec<(Vertex, usize)>,
    /// The first vertex of objects that nothing holds.
    pub unheld: Vertex,
    /// References of objects that are held, which are not addresses of objects.
    pub wrong: u64,
}
