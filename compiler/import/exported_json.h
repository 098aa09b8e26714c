/// exported_json: the JSON records of an archive of torch.export, read strictly.
///
/// A key that the schema demands must be there and of its type; what a newer minor version adds is
/// passed over, a kind of argument or specification that it adds is kept by name and refused later,
/// with all else that is not supported. Nothing here allocates by a number that it reads.
#pragma once

#include <string_view>

#include "stagecraft/compiler/import/exported_program.h"

namespace stagecraft::exported {

/// The version of the schema that is read: another major one is refused.
inline constexpr int kSchemaMajor = 8;

/// Errors: UsageFile, with the place in the JSON ("graph_module.graph.nodes[3].target"), what was
///         expected and what was found; for another major version of the schema, both versions.
[[nodiscard]] Program read_program(std::string_view json);

/// Errors: UsageFile, likewise.
[[nodiscard]] Payloads read_payloads(std::string_view json);

}  // namespace stagecraft::exported
