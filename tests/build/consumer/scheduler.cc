/// Builds a schedule, validates it, breaks it, and sees the validation fail, without a tensor
/// library.
#include <iostream>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace sc = stagecraft;

int main() {
  const sc::StageGraph chain = sc::StageGraph::chain(2);
  const sc::Schedule good = sc::one_f_one_b(chain, 4);
  std::cout << to_string(good) << '\n';
  if (!sc::validate(good, chain).empty()) {
    std::cerr << "a built schedule must be valid\n";
    return 1;
  }

  const sc::Schedule bad = sc::Schedule::parse("0F0 0B0 .   .\n.   1F0 1B0 .\n");
  const auto violations = sc::validate(bad, chain);
  for (const sc::Violation& violation : violations) {
    std::cout << violation.rule << ' ' << violation.message << '\n';
  }
  return violations.empty() ? 1 : 0;
}
