/// ExportedCall is one operator of an exported program with its arguments in the operator's own
/// order, ready to be called without further lookups.
///
/// It is bound once by the schema: arguments that the file leaves out get their defaults, numbers
/// that stand for tensors become tensors that promote types as numbers do, and enumerations become
/// c10's numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/import/exported/exported_program.h"

namespace stagecraft::exported {

/// BoundArgument is a constant, a value of the run by its slot, or a list with such values.
struct BoundArgument {
  enum class Elements : std::uint8_t { Tensors, OptionalTensors, Ints, Floats, Bools };

  /// The type that a number of the run must become because the operator takes nothing else.
  enum class Wanted : std::uint8_t { Anything, Tensor, Float };

  c10::IValue constant;
  int slot = -1;
  Wanted wanted = Wanted::Anything;
  bool is_list = false;
  Elements elements = Elements::Tensors;
  std::vector<BoundArgument> list;
};

/// Returns the slot of a value of the graph. Errors: those of the function's owner, which knows the
/// names.
using SlotOf = std::function<int(const std::string&)>;

/// Returns `argument` in the form that a parameter of type `type` takes; nothing, with the reason
/// in `why`, if it has no such form. `count`: the length of the list that a single number stands
/// for; 0 if a number cannot stand for a list.
[[nodiscard]] std::optional<BoundArgument> bind_argument(const Argument& argument,
                                                         const c10::Type& type,
                                                         int count,
                                                         const SlotOf& slot_of,
                                                         std::string& why);

/// Returns the argument with the run's values in its slots.
[[nodiscard]] c10::IValue value_of(const BoundArgument& argument,
                                   const std::vector<c10::IValue>& slots);

/// Calls `visit` with every slot that the argument reads.
void for_each_slot(const BoundArgument& argument, const std::function<void(int)>& visit);

struct ExportedCall {
  c10::OperatorHandle op;
  std::vector<BoundArgument> arguments;  ///< as many as the schema has
};

/// Returns "aten::conv2d" and "" for "torch.ops.aten.conv2d.default"; nothing for another target.
[[nodiscard]] std::optional<c10::OperatorName> operator_name_of(std::string_view target);

/// Returns the call that `node` describes; nothing, with the reason in `why`, if there is none:
/// this LibTorch does not have the operator, or the operator does not take the file's arguments.
[[nodiscard]] std::optional<ExportedCall> bind_call(const Node& node,
                                                    const SlotOf& slot_of,
                                                    std::string& why);

}  // namespace stagecraft::exported
