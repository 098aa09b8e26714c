/// ExportedCall: one operator of an exported program with its arguments in the operator's own
/// order, ready to be called with nothing left to look up.
///
/// Bound once by the schema: arguments that the file leaves out get their defaults, numbers that
/// stand for tensors become tensors that promote types as numbers do, enumerations c10's numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/import/exported_program.h"

namespace stagecraft::exported {

/// An argument: a constant, a value of the run by its slot, or a list with such values.
struct BoundArgument {
  enum class Elements : std::uint8_t { Tensors, OptionalTensors, Ints, Floats, Bools };

  /// What a number of the run must become, since the operator takes nothing else.
  enum class Wanted : std::uint8_t { Anything, Tensor, Float };

  c10::IValue constant;
  int slot = -1;
  Wanted wanted = Wanted::Anything;
  bool is_list = false;
  Elements elements = Elements::Tensors;
  std::vector<BoundArgument> list;
};

/// The slot of a value of the graph. Errors: those of who knows the names.
using SlotOf = std::function<int(const std::string&)>;

/// Returns `argument` as a parameter of type `type` takes it; nothing, with the reason in `why`,
/// where it cannot be one. `count`: of a list that a single number stands for; 0 where none can.
[[nodiscard]] std::optional<BoundArgument> bind_argument(const Argument& argument,
                                                         const c10::Type& type,
                                                         int count,
                                                         const SlotOf& slot_of,
                                                         std::string& why);

/// The argument, with the run's values in its slots.
[[nodiscard]] c10::IValue value_of(const BoundArgument& argument,
                                   const std::vector<c10::IValue>& slots);

/// Every slot that the argument reads.
void for_each_slot(const BoundArgument& argument, const std::function<void(int)>& visit);

struct ExportedCall {
  c10::OperatorHandle op;
  std::vector<BoundArgument> arguments;  ///< as many as the schema has
};

/// "aten::conv2d" and "" of "torch.ops.aten.conv2d.default"; nothing for another target.
[[nodiscard]] std::optional<c10::OperatorName> operator_name_of(std::string_view target);

/// Returns the call that `node` describes; nothing, with the reason in `why`, where there is none:
/// the operator is not known to this LibTorch, or does not take what the file gives it.
[[nodiscard]] std::optional<ExportedCall> bind_call(const Node& node,
                                                    const SlotOf& slot_of,
                                                    std::string& why);

}  // namespace stagecraft::exported
