/// Tests lists of passes, and the times that a program keeps of them.
#include "stagecraft/compiler/program/passes.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Letters {
  std::string text;
};

void add_a(Letters& letters) {
  letters.text += 'a';
}
void add_b(Letters& letters) {
  letters.text += 'b';
}
void fail(Letters&) {
  throw std::runtime_error("it fails");
}

TEST_CASE("passes run in their order, each timed under its name", "[compiler][passes]") {
  constexpr NamedPass<Letters> kPasses[] = {{"first", add_b}, {"second", add_a}, {"third", add_a}};
  Letters letters;
  const std::vector<PassTime> times = run_passes(kPasses, letters);
  CHECK(letters.text == "baa");
  REQUIRE(times.size() == 3);
  CHECK(times[0].name == "first");
  CHECK(times[2].name == "third");
  CHECK(std::ranges::all_of(times, [](const PassTime& t) { return t.seconds >= 0; }));
  CHECK(to_string({{"cut", 0.0012}, {"measure", 1.5}}) ==
        "compiled in 1501.2 ms:\n       1.2 ms  cut\n    1500.0 ms  measure\n");
  CHECK(to_string(std::vector<PassTime>()).empty());
}

TEST_CASE("a pass that fails is the last one to run", "[compiler][passes]") {
  constexpr NamedPass<Letters> kPasses[] = {{"first", add_a}, {"second", fail}, {"third", add_b}};
  Letters letters;
  CHECK_THROWS_WITH(run_passes(kPasses, letters), "it fails");
  CHECK(letters.text == "a");
}

TEST_CASE("a program explains the passes that compiled it", "[compiler][passes]") {
  testing::Chain module(2);
  const torch::Tensor x = torch::randn({4, 8});
  const Program program = compile(
      module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2});
  const std::vector<PassTime>& passes = program.compiled().passes;
  const auto place = [&](const char* name) {
    return std::ranges::find(passes, name, &PassTime::name) - passes.begin();
  };
  CHECK(place("capture") < place("cut"));
  CHECK(place("cut") < place("partition"));
  CHECK(place("partition") < std::ssize(passes));
  CHECK_THAT(program.explain(),
             ContainsSubstring("compiled in ") && ContainsSubstring(" ms  compare with eager\n"));
}

}  // namespace
}  // namespace stagecraft
