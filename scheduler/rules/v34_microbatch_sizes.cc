/// V34: the microbatches of every stage are a whole number.
#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

void check_microbatch_sizes(const RuleInput& in, Violations& out) {
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    const int size = in.graph.microbatch_size(s);
    if (in.tasks.microbatches() % size != 0) {
      Violation v;
      v.rule = "V34";
      v.row = in.placement.row(s).value_or(Violation::kNowhere);
      v.stages = {{s.value, s.value}};
      v.cause = std::to_string(size);
      v.missing = fmt::format("{} microbatches", size - in.tasks.microbatches() % size);
      v.message = fmt::format(
          "stage {} takes {} microbatches as one, but there are {}; take a multiple of {}, or "
          "another size",
          s.value,
          size,
          in.tasks.microbatches(),
          size);
      out.push_back(std::move(v));
    }
  }
}

}  // namespace stagecraft::rules
