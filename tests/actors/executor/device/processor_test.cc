#include "stagecraft/actors/executor/device/processor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Version.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::EnvironmentVariable;

ProcessorFacts xeon() {
  return {.vendor = "GenuineIntel",
          .name = "Xeon",
          .family = 6,
          .model = 207,
          .capability = "AVX512",
          .features = {"avx2", "avx512f"},
          .variables = {}};
}

ProcessorFacts epyc() {
  return {.vendor = "AuthenticAMD",
          .name = "EPYC",
          .family = 25,
          .model = 1,
          .capability = "AVX2",
          .features = {"avx2"},
          .variables = {}};
}

TEST_CASE("what a process says of itself is what ATen chooses", "[actors][processor]") {
  CHECK(processor_of_this_process().capability == at::get_cpu_capability());
  CHECK_FALSE(processor_of_this_process().vendor.empty());
  CHECK(processor_of_this_process().family > 0);
}

TEST_CASE("variables decide where they are set", "[actors][processor]") {
  const EnvironmentVariable aten("ATEN_CPU_CAPABILITY", "default");
  const EnvironmentVariable mkl("MKL_CBWR", "SSE4_2");
  const ProcessorFacts facts = processor_of_this_process();
  CHECK(facts.capability == "DEFAULT");
  CHECK_THAT(choice_text(facts),
             ContainsSubstring("DEFAULT ") &&
                 ContainsSubstring(" ATEN_CPU_CAPABILITY=default MKL_CBWR=SSE4_2"));
}

TEST_CASE("processes of one kind do not differ, whatever the model is called",
          "[actors][processor]") {
  ProcessorFacts other = xeon();
  other.name = "Xeon Gold";
  CHECK_FALSE(difference_of({{"a", xeon()}, {"b", other}}));
}

TEST_CASE("what ATen chooses is certain to differ, what MKL and oneDNN do may",
          "[actors][processor]") {
  const auto certain = difference_of({{"a", xeon()}, {"b", epyc()}, {"c", xeon()}});
  REQUIRE(certain);
  CHECK(certain->certain);
  CHECK(certain->what == "AVX2 on b; AVX512 on a, c");
  CHECK_THAT(certain->remedy,
             ContainsSubstring("--processor common") &&
                 ContainsSubstring("ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AVX2 "
                                   "ONEDNN_MAX_CPU_ISA=AVX2"));

  ProcessorFacts older = xeon();
  older.model = 85;
  const auto possible = difference_of({{"a", xeon()}, {"b", older}});
  REQUIRE(possible);
  CHECK_FALSE(possible->certain);
  CHECK_THAT(to_string(*possible),
             ContainsSubstring("may compute other bits") && ContainsSubstring("model 85") &&
                 ContainsSubstring("mend: "));
}

TEST_CASE("tools/processor sets the variables that hold to a capability", "[actors][processor]") {
  const auto said = [](const std::string& word) {
    std::string text = tests::run_command({"tools/processor", word}).out;
    std::ranges::replace(text, ' ', '\n');
    return text;
  };
  const auto meant = [](const std::string& capability) {
    std::string text;
    for (const std::string& variable : variables_that_hold(capability)) {
      text += variable + "\n";
    }
    return text;
  };
  CHECK(said("default") == meant("DEFAULT"));
  CHECK(said("avx2") == meant("AVX2"));
  CHECK(tests::run_command({"tools/processor", "sse9"}).exit_code == 2);
}

TEST_CASE("a long list of ranks is cut", "[actors][processor]") {
  std::vector<NamedProcessor> all{{"rank 0", xeon()}};
  for (int r = 1; r <= 10; ++r) {
    all.emplace_back("rank " + std::to_string(r), epyc());
  }
  CHECK_THAT(difference_of(all)->what, ContainsSubstring("rank 8 and 2 more; AVX512 on rank 0"));
}

TEST_CASE("those that are held to one capability differ in the vendor alone",
          "[actors][processor]") {
  const ProcessorFacts held = held_to(xeon(), "AVX2");
  CHECK(held.capability == "AVX2");
  ProcessorFacts older = xeon();
  older.model = 85;
  older.features = {"avx2"};
  CHECK_FALSE(difference_of({{"a", held}, {"b", held_to(older, "AVX2")}}));
  const auto vendors = difference_of({{"a", held}, {"b", held_to(epyc(), "AVX2")}});
  REQUIRE(vendors);
  CHECK_FALSE(vendors->certain);
  CHECK(can_be_held("AVX512", "AVX2"));
  CHECK_FALSE(can_be_held("AVX2", "AVX512"));
}

TEST_CASE("a process that has computed is held to nothing else (KC-1)", "[actors][processor]") {
  const std::string chosen = at::get_cpu_capability();
  const std::string other = chosen == "DEFAULT" ? "AVX2" : "DEFAULT";
  // Keeps the variables as they are now, and restores them at the end of the scope.
  std::vector<std::unique_ptr<EnvironmentVariable>> kept;
  for (const std::string& variable : variables_that_hold(other)) {
    kept.push_back(
        std::make_unique<EnvironmentVariable>(variable.substr(0, variable.find('=')), "kept"));
  }
  CHECK(thrown_by([&] { hold_this_process(other); }) == Errc::ClusterMember);
  CHECK(thrown_by([] { hold_this_process("SSE9"); }) == Errc::ClusterMember);
  CHECK_NOTHROW(hold_this_process(chosen));
}

}  // namespace
}  // namespace stagecraft
