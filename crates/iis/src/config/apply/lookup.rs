//! Looks up elements, entries and locks on a level of the configuration and on those above.

use self::EntryState::{Entry, Removed, Unmentioned};
use super::SectionEditor;
use crate::config::document::Id;
use crate::config::path::{PathStep, Selector};
use crate::config::schema::{CollectionSchema, EditError, owner};
use crate::config::{ConfigError, ElementPath, Result};

/// State of an entry on some levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Not mentioned.
    Unmentioned,
    Removed,
    /// Set by this element.
    Entry(Id),
}

impl EntryState {
    pub(super) fn entry(self) -> Option<Id> {
        match self {
            Self::Entry(id) => Some(id),
            Self::Unmentioned | Self::Removed => None,
        }
    }
}

/// Item that can be locked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock<'a> {
    Attribute(&'a str),
    Element(&'a str),
}

impl<'a> SectionEditor<'a> {
    /// The entry with these attributes on this level or above.
    pub(super) fn current(
        &self,
        steps: &[PathStep],
        collection: &CollectionSchema,
        selector: &Selector,
    ) -> Result<Option<Id>> {
        let above = self.above(steps, collection, selector)?;
        let above = above.unwrap_or(Unmentioned);
        let state = self.state_on(&self.level.roots, steps, collection, selector, above)?;
        Ok(state.entry())
    }

    /// The path of the entry's collection, the entry's attributes, and the collection's schema.
    pub(super) fn entry<'e>(
        &self,
        entry: &'e ElementPath,
    ) -> Result<(&'e [PathStep], &'e Selector, &'a CollectionSchema)> {
        let Some((steps, selector)) = entry.split_entry() else {
            let owner = owner(self.section, entry.steps());
            return Err(EditError::no_collection(&owner));
        };
        let collection = self.schema.collection(self.section, steps, selector)?;
        Ok((steps, selector, collection))
    }

    /// The section on a level.
    pub(super) fn section(&self, roots: &[Id]) -> Result<Option<Id>, ConfigError> {
        let roots = roots.iter();
        let found: Vec<Id> = roots
            .flat_map(|root| self.document.find(*root, self.section.names()))
            .collect();
        match found[..] {
            [_, second, ..] => Err(self.twice(second)),
            _ => Ok(found.first().copied()),
        }
    }

    /// The only element of this name.
    pub(super) fn only(&self, parent: Id, name: &str) -> Result<Option<Id>, ConfigError> {
        let mut named = self.document.children_named(parent, name);
        let found = named.next();
        match named.next() {
            Some(second) => Err(self.twice(second)),
            None => Ok(found),
        }
    }

    /// Target of steps on a level, if it exists.
    pub(super) fn find(&self, roots: &[Id], steps: &[PathStep]) -> Result<Option<Id>> {
        let Some(mut element) = self.section(roots)? else {
            return Ok(None);
        };
        for (place, step) in steps.iter().enumerate() {
            let next = match step {
                PathStep::Element(name) => self.only(element, name)?,
                PathStep::Entry(selector) => {
                    let (schema, steps) = (self.schema, &steps[..place]);
                    let collection = schema.collection(self.section, steps, selector)?;
                    let state = self.state(element, collection, selector, Unmentioned)?;
                    state.entry()
                }
            };
            match next {
                Some(next) => element = next,
                None => return Ok(None),
            }
        }
        Ok(Some(element))
    }

    /// State of an entry on the levels above; none if they are not read.
    pub(super) fn above(
        &self,
        steps: &[PathStep],
        collection: &CollectionSchema,
        selector: &Selector,
    ) -> Result<Option<EntryState>> {
        let Some(levels) = &self.level.above else {
            return Ok(None);
        };
        let mut state = Unmentioned;
        for roots in levels {
            state = self.state_on(roots, steps, collection, selector, state)?;
        }
        Ok(Some(state))
    }

    /// State of an entry after a level, by its state before.
    pub(super) fn state_on(
        &self,
        roots: &[Id],
        steps: &[PathStep],
        collection: &CollectionSchema,
        selector: &Selector,
        before: EntryState,
    ) -> Result<EntryState> {
        match self.find(roots, steps)? {
            Some(place) => Ok(self.state(place, collection, selector, before)?),
            None => Ok(before),
        }
    }

    /// State of an entry after all elements of a collection, applied in order.
    pub(super) fn state(
        &self,
        place: Id,
        collection: &CollectionSchema,
        selector: &Selector,
        before: EntryState,
    ) -> Result<EntryState, ConfigError> {
        let mut state = before;
        let mut is_here = false;
        let keys = collection.keys(selector);
        for child in self.document.children(place) {
            let name = self.document.name(child);
            let is = |word: &Option<String>| word.as_deref() == Some(name);
            let is_removal = || is(&collection.remove) && self.is_meant(child, collection, &keys);
            if is(&collection.clear) || is_removal() {
                state = Removed;
                is_here = false;
            } else if collection.is_entry(name) && self.is_meant(child, collection, selector) {
                if is_here && collection.is_unique() {
                    let key = self.key_text(child, collection);
                    let problem =
                        format!("a second entry for {key}, which IIS rejects: delete one");
                    return Err(self.document.error(child, problem));
                }
                state = Entry(child);
                is_here = true;
            }
        }
        Ok(state)
    }

    /// Returns true if an element is the entry with these attributes.
    pub(super) fn is_meant(
        &self,
        id: Id,
        collection: &CollectionSchema,
        selector: &Selector,
    ) -> bool {
        selector.attributes().all(|(name, value)| {
            let schema = collection.entry.attribute(name);
            let has = self.document.attribute(id, name);
            has.or(schema.unset())
                .is_some_and(|has| schema.is_same(has, value))
        })
    }

    /// The key attributes of an entry.
    pub(super) fn keys_in(&self, id: Id, collection: &CollectionSchema) -> Selector {
        collection.keys(&Selector::from_attributes(self.document.attributes(id)))
    }

    pub(super) fn key_text(&self, id: Id, collection: &CollectionSchema) -> String {
        let keys = self.keys_in(id, collection);
        let values: Vec<&str> = keys.attributes().map(|(_, value)| value).collect();
        values.join(" ")
    }

    /// Rejects a change of what a level above has locked.
    pub(super) fn check_locks(&self, steps: &[PathStep], lock: Lock<'_>) -> Result<()> {
        let Some(levels) = &self.level.above else {
            return Ok(());
        };
        for roots in levels {
            for depth in 0..=steps.len() {
                let Some(element) = self.find(roots, &steps[..depth])? else {
                    break;
                };
                let next = match steps.get(depth) {
                    Some(PathStep::Element(name)) => Some(Lock::Element(name)),
                    Some(PathStep::Entry(_)) => None,
                    None => Some(lock),
                };
                if self.document.attribute(element, "lockItem") == Some("true") {
                    let what = format!("<{}>", self.document.name(element));
                    return Err(self.locked(element, &what, "lockItem").into());
                }
                let by = next.and_then(|next| self.locked_by(element, next));
                if let (Some(next), Some(by)) = (next, by) {
                    let (Lock::Element(what) | Lock::Attribute(what)) = next;
                    return Err(self.locked(element, what, by).into());
                }
            }
        }
        Ok(())
    }

    /// The attribute of an element that locks a part of it.
    fn locked_by(&self, element: Id, part: Lock<'_>) -> Option<&'static str> {
        let (name, list, except) = match part {
            Lock::Attribute(name) => (name, "lockAttributes", "lockAllAttributesExcept"),
            Lock::Element(name) => (name, "lockElements", "lockAllElementsExcept"),
        };
        let has = |attribute: &str| {
            let value = self.document.attribute(element, attribute)?;
            let mut names = value.split(',').map(str::trim);
            Some(names.any(|listed| listed == name || listed == "*"))
        };
        if has(list) == Some(true) {
            return Some(list);
        }
        (has(except) == Some(false)).then_some(except)
    }

    pub(super) fn locked(&self, id: Id, what: &str, by: &str) -> ConfigError {
        let problem = format!("{what} is locked here by {by}");
        self.document.error(id, problem)
    }

    fn twice(&self, id: Id) -> ConfigError {
        let name = self.document.name(id);
        let problem = format!("a second <{name}>, which IIS rejects: merge them");
        self.document.error(id, problem)
    }
}
