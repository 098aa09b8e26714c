#include "stagecraft/tests/conformance/collective_conformance.h"

#include "stagecraft/tests/conformance/collective_forms.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("every form of the collectives keeps the contract",
          "[futures][collective][conformance]") {
  const CollectiveForm& form = GENERATE(from_range(kCollectiveForms));
  const CollectiveCase& contract = GENERATE(from_range(collective_cases()));
  DYNAMIC_SECTION(form.name << ": " << contract.name) {
    contract.run(form.members);
  }
}

}  // namespace
}  // namespace stagecraft
