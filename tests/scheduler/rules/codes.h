/// codes: the rules that violations name, in order, after a check that each says something.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/parts/violation.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::test {

using Rules = std::vector<std::string>;

[[nodiscard]] inline Rules codes(const std::vector<Violation>& violations) {
  Rules list;
  for (const Violation& v : violations) {
    CAPTURE(v.rule, v.message);
    CHECK_FALSE(v.message.empty());
    list.push_back(v.rule);
  }
  std::ranges::sort(list);
  return list;
}

}  // namespace stagecraft::test
