/// OperatorListHash identifies the operators of a model by their number and their names. A file
/// that refers to operators by their places has it, so that it is not used for another model.
///
///     @operators 133 0c5d3f20a1b4e877
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

struct OperatorListHash {
  std::size_t operators = 0;
  /// FNV-1a, 64 bits, of the names in the order of the forward, with a newline after each.
  std::uint64_t names = 0;

  friend bool operator==(const OperatorListHash&, const OperatorListHash&) = default;
};

/// Returns the hash of operators with these names ("aten::add.Tensor").
[[nodiscard]] OperatorListHash hash_of_operators(std::span<const std::string> names);

/// Returns "133 0c5d3f20a1b4e877".
[[nodiscard]] std::string to_string(const OperatorListHash& hash);

/// Reads the text of to_string(); nothing if it is none.
[[nodiscard]] std::optional<OperatorListHash> operator_list_hash_in(std::string_view text);

}  // namespace stagecraft
