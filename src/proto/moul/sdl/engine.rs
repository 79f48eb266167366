//! The states of the game's engine: animations, avatars, physics. Every client of every shard has
//! them, so their records can be read without any file. Descriptors from files take precedence.

use super::descriptor::{Descriptor, NestedType, SimpleType, Variable, VariableKind};
use std::sync::Arc;

/// A variable: its name, its type as descriptor files write it, and its number of elements (0: the
/// record contains the number).
type StateVariable = (&'static str, &'static str, u32);

/// Names, versions and variables. Records refer to variables by their index in this order. Clients
/// write the newest version of each; a server may have kept an older one.
const STATES: [(&str, u32, &[StateVariable]); 26] = [
    (
        "AnimTimeConvert",
        6,
        &[
            ("flags", "INT", 1),
            ("lastStateAnimTime", "FLOAT", 1),
            ("loopEnd", "FLOAT", 1),
            ("loopBegin", "FLOAT", 1),
            ("speed", "FLOAT", 1),
            ("currentEaseCurve", "BYTE", 1),
            ("currentEaseBeginWorldTime", "TIME", 1),
            ("lastStateChange", "TIME", 1),
        ],
    ),
    (
        "AnimTimeConvert",
        5,
        &[
            ("flags", "INT", 1),
            ("lastStateAnimTime", "FLOAT", 1),
            ("loopEnd", "FLOAT", 1),
            ("loopBegin", "FLOAT", 1),
            ("speed", "FLOAT", 1),
            ("speedEaseCurve", "CREATABLE", 1),
            ("currentEaseCurve", "BYTE", 1),
            ("currentEaseBeginWorldTime", "TIME", 1),
            ("lastStateChange", "TIME", 1),
        ],
    ),
    ("AGMaster", 5, &[("atcs", "$AnimTimeConvert", 0), ("blends", "BYTE", 0)]),
    (
        "Layer",
        6,
        &[
            ("atc", "$AnimTimeConvert", 1),
            ("passThruChannels", "INT", 1),
            ("transform", "FLOAT", 0),
            ("channelData", "BYTE", 0),
        ],
    ),
    (
        "standardStage",
        3,
        &[
            ("name", "STRING32", 1),
            ("numLoops", "SHORT", 1),
            ("forward", "BYTE", 1),
            ("backward", "BYTE", 1),
            ("stageAdvance", "BYTE", 1),
            ("stageRegress", "BYTE", 1),
            ("notifyEnter", "BOOL", 1),
            ("notifyLoop", "BOOL", 1),
            ("notifyStageAdvance", "BOOL", 1),
            ("notifyStageRegress", "BOOL", 1),
            ("useGlobalCoords", "BOOL", 1),
            ("localTime", "FLOAT", 1),
            ("currentLoop", "SHORT", 1),
            ("isAttached", "BOOL", 1),
        ],
    ),
    (
        "standardStage",
        2,
        &[
            ("name", "STRING32", 1),
            ("numLoops", "SHORT", 1),
            ("forward", "BYTE", 1),
            ("backward", "BYTE", 1),
            ("stageAdvance", "BYTE", 1),
            ("stageRegress", "BYTE", 1),
            ("notifyEnter", "BOOL", 1),
            ("notifyLoop", "BOOL", 1),
            ("notifyStageAdvance", "BOOL", 1),
            ("notifyStageRegress", "BOOL", 1),
            ("useGlobalCoords", "BOOL", 1),
            ("localTime", "FLOAT", 1),
            ("length", "FLOAT", 1),
            ("currentLoop", "SHORT", 1),
            ("isAttached", "BOOL", 1),
        ],
    ),
    (
        "genericBrain",
        3,
        &[
            ("noBrain", "BOOL", 1),
            ("stages", "$standardStage", 0),
            ("currentStage", "BYTE", 1),
            ("freezePhysicalAtEnd", "BOOL", 1),
            ("callbackRcvr", "PLKEY", 1),
            ("movingForward", "BOOL", 1),
            ("exitFlags", "BYTE", 1),
            ("type", "BYTE", 1),
            ("mode", "BYTE", 1),
            ("fadeIn", "FLOAT", 1),
            ("fadeOut", "FLOAT", 1),
            ("moveMode", "BYTE", 1),
            ("bodyUsage", "BYTE", 1),
        ],
    ),
    (
        "climbBrain",
        1,
        &[
            ("curMode", "INT", 1),
            ("nextMode", "INT", 1),
            ("allowedDirections", "INT", 1),
            ("allowedDismounts", "INT", 1),
            ("vertProbeLength", "FLOAT", 1),
            ("horizProbeLength", "FLOAT", 1),
            ("curStageAttached", "BOOL", 1),
            ("curStage", "INT", 1),
            ("curStageTime", "FLOAT", 1),
            ("curStageStrength", "FLOAT", 1),
            ("exitStageAttached", "BOOL", 1),
            ("exitStage", "INT", 1),
            ("exitStageTime", "FLOAT", 1),
            ("exitStageStrength", "BOOL", 1),
        ],
    ),
    ("driveBrain", 1, &[("unUsed", "INT", 1)]),
    (
        "brainUnion",
        1,
        &[
            ("fGenericBrain", "$genericBrain", 0),
            ("fClimbBrain", "$climbBrain", 0),
            ("fDriveBrain", "$driveBrain", 0),
        ],
    ),
    ("avatar", 7, &[("brainStack", "$brainUnion", 0), ("invisibilityLevel", "BYTE", 1)]),
    (
        "avatar",
        6,
        &[
            ("brainStack", "$brainUnion", 0),
            ("invisibilityLevel", "BYTE", 1),
            ("position", "POINT3", 1),
            ("rotation", "FLOAT", 1),
            ("subworld", "PLKEY", 1),
        ],
    ),
    ("avatar", 5, &[("brainStack", "$brainUnion", 0), ("invisibilityLevel", "BYTE", 1)]),
    (
        "avatarPhysical",
        1,
        &[("position", "POINT3", 1), ("rotation", "FLOAT", 1), ("subworld", "PLKEY", 1)],
    ),
    ("clothingItem", 3, &[("item", "PLKEY", 1), ("tint", "RGB8", 1), ("tint2", "RGB8", 1)]),
    ("appearanceOptions", 2, &[("skinTint", "RGB8", 1), ("faceBlends", "BYTE", 0)]),
    (
        "clothing",
        4,
        &[
            ("wardrobe", "$clothingItem", 0),
            ("appearance", "$appearanceOptions", 1),
            ("linkInAnim", "PLKEY", 1),
        ],
    ),
    ("MorphSet", 2, &[("mesh", "PLKEY", 1), ("weights", "BYTE", 0)]),
    ("MorphSequence", 2, &[("targetID", "BYTE", 1), ("morphs", "$MorphSet", 0)]),
    ("ParticleSystem", 1, &[("numParticles", "INT", 1)]),
    (
        "physical",
        2,
        &[
            ("position", "POINT3", 1),
            ("orientation", "QUATERNION", 1),
            ("linear", "VECTOR3", 1),
            ("angular", "VECTOR3", 1),
            ("subworld", "PLKEY", 1),
        ],
    ),
    (
        "Responder",
        3,
        &[
            ("curState", "INT", 1),
            ("curCommand", "INT", 1),
            ("netRequest", "BOOL", 1),
            ("completedEvents", "INT", 0),
            ("enabled", "BOOL", 1),
            ("playerKey", "PLKEY", 1),
            ("triggerer", "PLKEY", 1),
        ],
    ),
    (
        "SoundState",
        1,
        &[("desiredVolume", "FLOAT", 1), ("time", "TIME", 1), ("playing", "BOOL", 1)],
    ),
    ("Sound", 1, &[("sounds", "$SoundState", 0)]),
    ("XRegion", 1, &[("cleared", "BOOL", 1)]),
    ("CloneMessage", 1, &[("message", "CREATABLE", 1)]),
];

/// The descriptors of all states.
pub(super) fn descriptors() -> impl Iterator<Item = Descriptor> {
    STATES.iter().map(|(name, version, lines)| {
        let variables = lines.iter().filter_map(variable).collect();
        Descriptor::new(Arc::from(*name), *version, variables)
    })
}

fn variable(line: &StateVariable) -> Option<Variable> {
    let (name, of, count) = line;
    let kind = match of.strip_prefix('$') {
        Some(name) => VariableKind::Nested(NestedType { name: Arc::from(name), seen: None }),
        None => VariableKind::Simple(SimpleType::named(of)?),
    };
    Some(Variable {
        name: Arc::from(*name),
        kind,
        count: (*count > 0).then_some(*count),
        default: None,
        options: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_line_becomes_a_variable() {
        for (descriptor, (_, _, lines)) in descriptors().zip(STATES) {
            assert_eq!(descriptor.variables().len(), lines.len(), "{}", descriptor.name);
        }
    }

    #[test]
    fn nested_records_have_a_descriptor() {
        let known: HashSet<String> =
            descriptors().map(|descriptor| descriptor.name.to_string()).collect();
        for descriptor in descriptors() {
            for place in 0..descriptor.nested_count() {
                let (_, nested) = descriptor.nested(place).unwrap();
                assert!(known.contains(&*nested.name), "{}", nested.name);
            }
        }
    }
}
