#include "stagecraft/tests/conformance/transport_conformance.h"

#include <set>
#include <string_view>

#include "stagecraft/futures/routing/transport_choice.h"
#include "stagecraft/tests/conformance/transport_forms.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("every transport keeps the contract", "[futures][transport][conformance]") {
  const TransportForm& form = GENERATE(from_range(transport_forms()));
  const TransportCase& contract = GENERATE(from_range(transport_cases()));
  DYNAMIC_SECTION(form.name << ": " << contract.name) {
    contract.run(form.ends);
  }
}

TEST_CASE("no transport of the table is left out of the contract",
          "[futures][transport][conformance]") {
  std::set<std::string_view> used;
  for (const TransportForm& form : transport_forms()) {
    used.merge(form.ends(2).transports);
  }
  for (const TransportRow& row : all_transports()) {
    INFO(row.name << ": add a network that uses it in tests/conformance/transport_forms.cc");
    CHECK(used.contains(row.name));
  }
}

}  // namespace
}  // namespace stagecraft
