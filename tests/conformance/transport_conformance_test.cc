#include "stagecraft/tests/conformance/transport_conformance.h"

#include "stagecraft/tests/conformance/transport_forms.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Lists every transport; a new one is one more line.
TEMPLATE_TEST_CASE("every transport keeps the contract",
                   "[futures][transport][conformance]",
                   InOneProcess,
                   OverTcp,
                   OverLocalSockets,
                   HereAndElsewhere,
                   FaultyWithoutFaults) {
  const TransportCase& contract = GENERATE(from_range(transport_cases()));
  DYNAMIC_SECTION(contract.name) {
    contract.run(TestType::ends);
  }
}

}  // namespace
}  // namespace stagecraft
