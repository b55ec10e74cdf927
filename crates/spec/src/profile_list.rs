//! Lists of profiles as the command line takes them: `ext4,xfs` or `all`.

use crate::nearest::nearest;
use crate::{PROFILES, Profile, profile};

/// The profiles that `list` names, separated by commas, in the order given and each once; `all`
/// stands for every built-in profile.
///
/// # Errors
/// When the list is empty or names an unknown profile.
pub fn profiles_from_list(list: &str) -> Result<Vec<&'static Profile>, ProfileListError> {
    let mut chosen: Vec<&'static Profile> = Vec::new();
    for name in list.split(',').map(str::trim) {
        if name.is_empty() {
            return Err(ProfileListError::Empty {
                list: list.to_owned(),
            });
        }
        let named: Vec<&'static Profile> = if name == "all" {
            PROFILES.iter().collect()
        } else {
            vec![profile(name).ok_or_else(|| ProfileListError::Unknown {
                name: name.to_owned(),
            })?]
        };
        for profile in named {
            if !chosen.iter().any(|known| known.name == profile.name) {
                chosen.push(profile);
            }
        }
    }
    Ok(chosen)
}

/// Why a list of profiles cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileListError {
    /// A name between two commas, or the whole list, is empty.
    #[error("`{list}` has an empty name in it: name profiles such as `ext4,xfs`, or `all`")]
    Empty {
        /// The list as given.
        list: String,
    },
    /// A name stands for no profile.
    #[error("unknown file-system profile `{name}`: {}", profile_help(name))]
    Unknown {
        /// The name as given.
        name: String,
    },
}

/// What helps somebody who named an unknown profile.
pub(crate) fn profile_help(name: &str) -> String {
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    names_help(name, &known)
}

/// Suggests the nearest of the known names, and lists them all.
pub(crate) fn names_help(name: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? known: {list}"),
        None => format!("known: {list}"),
    }
}
