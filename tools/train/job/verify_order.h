/// VerifyOrder says in which orders --verify adds up gradients in one process, and what that takes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

struct VerifyOrder {
  /// Why the run's sums differ from those of one process; none: they do not.
  std::optional<std::string> reordered;
  /// The order of the run's sums, if a second training in one process can follow it; else null.
  std::shared_ptr<const SumOrder> as_ranks;
};

[[nodiscard]] VerifyOrder verify_order(const Execution& execution, const Choice& choice);

/// Returns what the trainings in one process hold.
[[nodiscard]] OneProcessBytes one_process_bytes(const VerifyOrder& order, const Program& program);

}  // namespace stagecraft::tools
