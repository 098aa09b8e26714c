#include "stagecraft/tests/simulate/seam/links.h"

#include "stagecraft/tests/simulate/seam/link_forms.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::simulation {
namespace {

TEST_CASE("every network keeps its promises to actors", "[simulate][seam]") {
  const LinkForm& form = GENERATE(from_range(link_forms()));
  const LinkCase& promise = GENERATE(from_range(link_cases()));
  DYNAMIC_SECTION(form.name << ": " << promise.name) {
    for (int time = 0; time < form.times; ++time) {
      INFO("time " << time);
      form.with(time, promise.run);
    }
  }
}

TEST_CASE("the other process of a link", "[simulate][seam]") {
  CHECK_FALSE(run_other_process());  // it does not return in that process
}

}  // namespace
}  // namespace stagecraft::simulation
