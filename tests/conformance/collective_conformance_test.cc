#include "stagecraft/tests/conformance/collective_conformance.h"

#include "stagecraft/tests/conformance/collective_forms.h"
#include "stagecraft/tests/conformance/transport_forms.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Lists every form of the collectives; a new one is one more line.
TEMPLATE_TEST_CASE("every form of the collectives keeps the contract",
                   "[futures][collective][conformance]",
                   OverTransport<InOneProcess>,
                   OverTransport<HereAndElsewhere>) {
  const CollectiveCase& contract = GENERATE(from_range(collective_cases()));
  DYNAMIC_SECTION(contract.name) {
    contract.run(TestType::members);
  }
}

}  // namespace
}  // namespace stagecraft
