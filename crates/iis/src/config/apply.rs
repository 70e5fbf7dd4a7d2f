//! Applies a change of one section to one level of the configuration, with minimal changes to its
//! text.
//!
//! IIS rejects a second entry with the same key, even if the first one is inherited from the
//! server's configuration. So where an entry may be inherited, its removal is placed before the new
//! one.

mod lookup;

use self::lookup::EntryState::{Entry, Removed, Unmentioned};
use self::lookup::{EntryState, Lock};
use super::document::{Id, InsertPosition, XmlDocument};
use super::path::{PathStep, Selector};
use super::schema::{CollectionSchema, EditError, Schema, is_lock, owner};
use super::value::KeyKind;
use super::{ConfigChange, ElementPath, Result, SectionPath};

/// A level of the configuration: the server, a site, or a path below one.
#[derive(Debug)]
pub(crate) struct Level {
    /// The elements that contain its sections; new ones are added to the first.
    pub(crate) roots: Vec<Id>,
    /// The roots of each level above, the outermost first; none if they are in another file, which is
    /// not read.
    pub(crate) above: Option<Vec<Vec<Id>>>,
    /// The locations that inherit from it.
    pub(crate) below: Vec<Id>,
}

/// Returns true if the levels above may have an entry: they are in a file that was not read where
/// their state is unknown.
fn may_be_inherited(above: Option<EntryState>) -> bool {
    !matches!(above, Some(Unmentioned | Removed))
}

/// A section that is edited on one level.
pub(crate) struct SectionEditor<'a> {
    pub(crate) document: &'a mut XmlDocument,
    pub(crate) schema: &'a Schema,
    pub(crate) section: &'a SectionPath,
    pub(crate) level: &'a Level,
}

impl SectionEditor<'_> {
    pub(crate) fn apply(&mut self, change: &ConfigChange) -> Result<()> {
        self.check_section()?;
        match change {
            ConfigChange::Set {
                element,
                attribute,
                value,
            } => self.set(element.steps(), attribute, value),
            ConfigChange::Add { entry, first } => self.add(entry, *first, false),
            ConfigChange::Ensure { entry } => self.add(entry, false, true),
            ConfigChange::New { entry, first } => {
                if self.has(change)? {
                    return Err(self.exists(entry));
                }
                self.add(entry, *first, false)
            }
            ConfigChange::Take { entry } => {
                if !self.has(change)? {
                    return Err(self.of_entry(entry, "has no entry"));
                }
                self.remove(entry)
            }
            ConfigChange::Remove { entry } => self.remove(entry),
            ConfigChange::Fill {
                collection,
                entries,
            } => self.fill(collection, entries),
            ConfigChange::Clear { element } => self.clear(element.steps()),
            // The server handles it, because it concerns locations.
            ConfigChange::Delegate { .. } => Ok(()),
        }
    }

    /// Returns true if the entry that a change adds or removes exists on this level or above.
    pub(crate) fn has(&self, change: &ConfigChange) -> Result<bool> {
        let (ConfigChange::New { entry, .. } | ConfigChange::Take { entry }) = change else {
            return Ok(false);
        };
        let (steps, selector, collection) = self.entry(entry)?;
        let keys = match change {
            ConfigChange::New { .. } => collection.new_keys(selector),
            _ => collection.keys(selector),
        };
        Ok(self.current(steps, collection, &keys)?.is_some())
    }

    /// Rejects attributes of a new or changed entry if another one has a key of them: IIS rejects the
    /// whole file.
    fn check_keys(
        &self,
        steps: &[PathStep],
        collection: &CollectionSchema,
        entry: &Selector,
        own: Option<Id>,
    ) -> Result<()> {
        if !collection.is_unique() {
            return Ok(());
        }
        for keys in collection.all_keys(entry) {
            let found = self.current(steps, collection, &keys)?;
            if found.is_some() && found != own {
                let owner = owner(self.section, steps);
                let why = format!("{owner} already has the entry {keys}");
                return Err(EditError::Refused(why));
            }
        }
        Ok(())
    }

    /// Rejects a new value of a key that another entry has.
    fn check_new_key(&self, steps: &[PathStep], attribute: &str, value: &str) -> Result<()> {
        let Some((PathStep::Entry(selector), steps)) = steps.split_last() else {
            return Ok(());
        };
        let collection = self.schema.collection(self.section, steps, selector)?;
        let Some(own) = self.current(steps, collection, selector)? else {
            return Ok(());
        };
        let others = self.document.attributes(own);
        let others = others.filter(|(name, _)| *name != attribute);
        let entry = Selector::from_attributes(others.chain([(attribute, value)]));
        self.check_keys(steps, collection, &entry, Some(own))
    }

    /// The error for a new entry that already exists.
    pub(crate) fn exists(&self, entry: &ElementPath) -> EditError {
        self.of_entry(entry, "already has the entry")
    }

    /// The error that a collection has an entry, or not.
    fn of_entry(&self, entry: &ElementPath, has: &str) -> EditError {
        match self.entry(entry) {
            Ok((steps, selector, collection)) => {
                let (owner, keys) = (owner(self.section, steps), collection.keys(selector));
                EditError::Refused(format!("{owner} {has} {keys}"))
            }
            Err(error) => error,
        }
    }

    fn set(&mut self, steps: &[PathStep], attribute: &str, value: &str) -> Result<()> {
        let schema = self.schema.walk(self.section, steps)?;
        let value = schema.check(&owner(self.section, steps), attribute, value)?;
        let known = schema.attribute(attribute);
        if known.key != KeyKind::No {
            self.check_new_key(steps, attribute, &value)?;
        }
        self.check_locks(steps, Lock::Attribute(attribute))?;
        let element = self.made(steps)?;
        let has = self.document.attribute(element, attribute);
        if !has.is_some_and(|has| known.is_same(has, &value)) {
            self.document.set_attribute(element, attribute, &value);
        }
        Ok(())
    }

    fn add(&mut self, entry: &ElementPath, first: bool, keeps: bool) -> Result<()> {
        let (steps, selector, collection) = self.entry(entry)?;
        let owner = owner(self.section, steps);
        let new = collection.check_entry(&owner, selector)?;
        let keys = collection.new_keys(&new);
        let mut local = self.state_on(&self.level.roots, steps, collection, &keys, Unmentioned)?;
        let above = self.above(steps, collection, &keys)?;
        let own = local.entry().or(above.and_then(EntryState::entry));
        if !keeps || own.is_none() {
            self.check_keys(steps, collection, &new, own)?;
        }
        let mut locks = self.locks(local);
        match local {
            Entry(_) if keeps => return Ok(()),
            Entry(id) if !first => {
                self.replace(id, collection, &new);
                // The entry may lack its removal: the file never ran on this server, or a level
                // between was cleared.
                if may_be_inherited(above) {
                    self.remove_inherited(&self.level.roots, steps, collection, &keys)?;
                }
                return Ok(());
            }
            Unmentioned if keeps && matches!(above, Some(Entry(_))) => return Ok(()),
            _ if first => {
                // A removal that stays behind would remove the new entry.
                self.delete(steps, collection, &keys)?;
                local = self.state_on(&self.level.roots, steps, collection, &keys, Unmentioned)?;
            }
            _ => {}
        }
        self.check_locks(steps, Lock::Element(collection.entry_name()))?;
        let place = self.made(steps)?;
        let first = first || collection.prepends;
        if local == Unmentioned && may_be_inherited(above) {
            self.insert_removal(place, first, collection, &keys, &owner, above)?;
        }
        let at = self.place_of(place, collection, first);
        locks
            .0
            .retain(|(name, _)| new.0.iter().all(|(own, _)| own != name));
        let attributes = new.attributes().chain(locks.attributes());
        self.document
            .insert(place, at, collection.entry_name(), attributes);
        let below = self.level.below.clone();
        below
            .iter()
            .try_for_each(|location| self.remove_inherited(&[*location], steps, collection, &keys))
    }

    /// The locks of an entry on this level.
    fn locks(&self, local: EntryState) -> Selector {
        let entry = local.entry().into_iter();
        let attributes = entry.flat_map(|id| self.document.attributes(id));
        Selector::from_attributes(attributes.filter(|(name, _)| is_lock(name)))
    }

    /// Deletes an entry and its removals from this level.
    fn delete(
        &mut self,
        steps: &[PathStep],
        collection: &CollectionSchema,
        keys: &Selector,
    ) -> Result<()> {
        let Some(place) = self.find(&self.level.roots, steps)? else {
            return Ok(());
        };
        for child in self.document.children(place).collect::<Vec<_>>() {
            let name = self.document.name(child);
            let is_of_it = collection.is_entry(name) || collection.remove.as_deref() == Some(name);
            if is_of_it && self.is_meant(child, collection, keys) {
                self.document.remove(child);
            }
        }
        Ok(())
    }

    /// Inserts the removal of an inherited entry before a level's own entry with the same key.
    fn remove_inherited(
        &mut self,
        roots: &[Id],
        steps: &[PathStep],
        collection: &CollectionSchema,
        keys: &Selector,
    ) -> Result<()> {
        let Some(remove) = &collection.remove else {
            return Ok(());
        };
        let Some(place) = self.find(roots, steps)? else {
            return Ok(());
        };
        let local = self.state(place, collection, keys, Unmentioned)?;
        let has_removal = self.document.children(place).any(|child| {
            let name = self.document.name(child);
            collection.clear.as_deref() == Some(name)
                || (name == remove && self.is_meant(child, collection, keys))
        });
        if let Entry(id) = local
            && !has_removal
        {
            self.document
                .insert(place, InsertPosition::Before(id), remove, keys.attributes());
        }
        Ok(())
    }

    fn remove(&mut self, entry: &ElementPath) -> Result<()> {
        let (steps, selector, collection) = self.entry(entry)?;
        let owner = owner(self.section, steps);
        for (name, value) in &selector.0 {
            collection.entry.check(&owner, name, value)?;
        }
        let roots = &self.level.roots;
        let mut local = self.state_on(roots, steps, collection, selector, Unmentioned)?;
        if let Entry(id) = local {
            self.document.remove(id);
            local = self.state_on(roots, steps, collection, selector, Unmentioned)?;
        }
        let above = self.above(steps, collection, selector)?;
        if local == Unmentioned && may_be_inherited(above) {
            let keys = match above {
                Some(Entry(id)) => self.keys_in(id, collection),
                _ => selector.clone(),
            };
            let place = self.made(steps)?;
            self.insert_removal(place, collection.prepends, collection, &keys, &owner, above)?;
        }
        Ok(())
    }

    fn fill(&mut self, path: &ElementPath, entries: &[Selector]) -> Result<()> {
        let steps = path.steps();
        let collection = self
            .schema
            .collection(self.section, steps, &Selector::default())?;
        if let Some(place) = self.find(&self.level.roots, steps)? {
            let keys = |entry| collection.new_keys(entry);
            let wanted: Vec<Selector> = entries.iter().map(keys).collect();
            for child in self.document.children(place).collect::<Vec<_>>() {
                let is_entry = collection.is_entry(self.document.name(child));
                let is_wanted = |entry: &Selector| self.is_meant(child, collection, entry);
                if is_entry && !wanted.iter().any(is_wanted) {
                    self.document.remove(child);
                }
            }
        }
        entries.iter().try_for_each(|entry| {
            let entry = path.clone().with(PathStep::Entry(entry.clone()));
            self.add(&entry, false, false)
        })
    }

    fn clear(&mut self, steps: &[PathStep]) -> Result<()> {
        if let Some((PathStep::Element(name), outer)) = steps.split_last() {
            let schema = self.schema.walk(self.section, outer)?;
            if let Err(error) = schema.element(&owner(self.section, outer), name) {
                if !schema.attributes.contains_key(name) {
                    return Err(error);
                }
                if let Some(element) = self.find(&self.level.roots, outer)? {
                    self.document.remove_attribute(element, name);
                }
                return Ok(());
            }
        }
        if let Some(element) = self.find(&self.level.roots, steps)? {
            self.document.remove(element);
        }
        Ok(())
    }

    /// Adds the section to a root, in the innermost of its groups that exists.
    fn made_section(&mut self, root: Id) -> Id {
        let names: Vec<&str> = self.section.names().collect();
        let groups = (1..names.len()).rev().find_map(|depth| {
            let groups = self.document.find(root, names[..depth].iter().copied());
            Some((*groups.first()?, depth))
        });
        let (group, depth) = groups.unwrap_or((root, 0));
        names[depth..].iter().fold(group, |parent, name| {
            self.document.insert(parent, InsertPosition::End, name, [])
        })
    }

    /// Rejects a section that is in another file or encrypted.
    fn check_section(&self) -> Result<()> {
        let Some(section) = self.section(&self.level.roots)? else {
            return Ok(());
        };
        let has = |name| self.document.attribute(section, name).is_some();
        let name = self.document.name(section);
        let problem = if has("configSource") {
            format!("<{name}> is in another file because of its configSource: move it here")
        } else if has("configProtectionProvider") {
            format!("<{name}> is encrypted; only Windows can decrypt it")
        } else {
            return Ok(());
        };
        Err(self.document.error(section, problem).into())
    }

    /// Target of steps on this level, created if absent.
    fn made(&mut self, steps: &[PathStep]) -> Result<Id> {
        let roots = &self.level.roots;
        let mut element = match self.section(roots)? {
            Some(section) => section,
            None => self.made_section(roots[0]),
        };
        for (place, step) in steps.iter().enumerate() {
            element = match step {
                PathStep::Element(name) => match self.only(element, name)? {
                    Some(found) => found,
                    None => self.document.insert(element, InsertPosition::End, name, []),
                },
                PathStep::Entry(selector) => self.made_entry(element, &steps[..place], selector)?,
            };
        }
        Ok(element)
    }

    /// An entry on this level, copied from the inherited one if only that exists.
    fn made_entry(&mut self, place: Id, steps: &[PathStep], selector: &Selector) -> Result<Id> {
        let owner = owner(self.section, steps);
        let collection = self.schema.collection(self.section, steps, selector)?;
        if let Entry(id) = self.state(place, collection, selector, Unmentioned)? {
            return Ok(id);
        }
        let above = self.above(steps, collection, selector)?;
        let Some(Entry(inherited)) = above else {
            let why = format!("{owner} has no entry {selector}");
            return Err(EditError::Refused(why));
        };
        let keys = self.keys_in(inherited, collection);
        self.insert_removal(place, collection.prepends, collection, &keys, &owner, above)?;
        Ok(self.document.copy(inherited, place))
    }

    /// Replaces the attributes of an entry, except its locks.
    fn replace(&mut self, id: Id, collection: &CollectionSchema, new: &Selector) {
        let old = Selector::from_attributes(self.document.attributes(id));
        for (name, _) in old.attributes() {
            if !is_lock(name) && !new.0.iter().any(|(kept, _)| kept == name) {
                self.document.remove_attribute(id, name);
            }
        }
        for (name, value) in &new.0 {
            let schema = collection.entry.attribute(name);
            let has = self.document.attribute(id, name);
            if !has.is_some_and(|has| schema.is_same(has, value)) {
                self.document.set_attribute(id, name, value);
            }
        }
        for child in self.document.children(id).collect::<Vec<_>>() {
            self.document.remove(child);
        }
    }

    fn insert_removal(
        &mut self,
        place: Id,
        first: bool,
        collection: &CollectionSchema,
        keys: &Selector,
        owner: &str,
        above: Option<EntryState>,
    ) -> Result<()> {
        let Some(remove) = &collection.remove else {
            return Err(EditError::Refused(format!(
                "an entry of {owner} in the server's configuration cannot be removed or replaced \
                 at a location"
            )));
        };
        if let Some(Entry(id)) = above
            && self.document.attribute(id, "lockItem") == Some("true")
        {
            let what = self.key_text(id, collection);
            return Err(self.locked(id, &what, "lockItem").into());
        }
        let at = self.place_of(place, collection, first);
        self.document.insert(place, at, remove, keys.attributes());
        Ok(())
    }

    /// Position of a new entry: before the other entries that apply, or directly after them.
    fn place_of(&self, place: Id, collection: &CollectionSchema, first: bool) -> InsertPosition {
        let is_entry = |id: &Id| collection.is_entry(self.document.name(*id));
        let is_clear = |id: &Id| collection.clear.as_deref() == Some(self.document.name(*id));
        let mut children = self.document.children(place);
        if first {
            let all: Vec<Id> = children.collect();
            // It removes what stands before it.
            let start = all.iter().rposition(is_clear).map_or(0, |clear| clear + 1);
            return match (all[start..].iter().copied().find(is_entry), start) {
                (Some(entry), _) => InsertPosition::Before(entry),
                (None, 0) => InsertPosition::End,
                (None, _) => InsertPosition::After(all[start - 1]),
            };
        }
        let is_of_it = |id: &Id| {
            let is_removal = collection.remove.as_deref() == Some(self.document.name(*id));
            is_entry(id) || is_clear(id) || is_removal
        };
        children
            .rfind(is_of_it)
            .map_or(InsertPosition::End, InsertPosition::After)
    }
}
