/// exported_json reads the JSON records of an archive of torch.export, strictly.
///
/// A key that the schema requires must be present and of its type. Keys that a newer minor version
/// adds are ignored. A new kind of argument or specification is kept by name and refused later,
/// together with all other unsupported parts. Nothing here allocates memory by a number that it
/// reads.
#pragma once

#include <string_view>

#include "stagecraft/compiler/import/exported/exported_program.h"

namespace stagecraft::exported {

/// The version of the schema that is read. Another major version is refused.
inline constexpr int kSchemaMajor = 8;

/// Reads the program.
/// Errors: UsageFile, with the place in the JSON ("graph_module.graph.nodes[3].target"), the
/// expected and the found value; for another major version of the schema, both versions.
[[nodiscard]] Program read_program(std::string_view json);

/// Reads the payloads. Errors: UsageFile, likewise.
[[nodiscard]] Payloads read_payloads(std::string_view json);

}  // namespace stagecraft::exported
