#include "stagecraft/actors/cluster.h"

#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// The arguments of a program, as main() gets them.
struct Arguments {
  std::vector<std::string> words;
  std::vector<char*> argv;
  int argc = 0;

  explicit Arguments(std::vector<std::string> w) : words(std::move(w)) {
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
  }
  std::vector<std::string> left() const { return {argv.begin(), argv.begin() + argc}; }
};

TEST_CASE("a cluster takes its own option out of the arguments", "[actors][cluster]") {
  const auto words = GENERATE(std::vector<std::string>{"train", "--ranks", "3", "--steps", "7"},
                              std::vector<std::string>{"train", "--steps", "7", "--ranks=3"});
  Arguments arguments(words);
  const Cluster cluster = Cluster::from_args(arguments.argc, arguments.argv.data());
  CHECK(cluster.ranks() == 3);
  CHECK(arguments.left() == std::vector<std::string>{"train", "--steps", "7"});
  CHECK(arguments.argv[3] == nullptr);
}

TEST_CASE("without the option there are at least eight ranks", "[actors][cluster]") {
  Arguments arguments({"train", "--ranksome", "1"});
  CHECK(Cluster::from_args(arguments.argc, arguments.argv.data()).ranks() >= 8);
  CHECK(arguments.left() == std::vector<std::string>{"train", "--ranksome", "1"});
}

TEST_CASE("a number of ranks that is none is refused", "[actors][cluster]") {
  const auto text = GENERATE("0", "-1", "two", "2x", "");
  Arguments arguments({"train", "--ranks", text});
  CHECK(thrown_by([&] { (void)Cluster::from_args(arguments.argc, arguments.argv.data()); }) ==
        Errc::UsageArgument);
  Arguments cut({"train", "--ranks"});
  CHECK(thrown_by([&] { (void)Cluster::from_args(cut.argc, cut.argv.data()); }) ==
        Errc::UsageArgument);
  CHECK(thrown_by([] { (void)Cluster::local(0); }) == Errc::UsageArgument);
}

}  // namespace
}  // namespace stagecraft
