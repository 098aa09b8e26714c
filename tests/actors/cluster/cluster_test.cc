#include "stagecraft/actors/cluster/cluster.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::EnvironmentVariable;

/// Holds the arguments of a program as main() gets them.
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

/// Returns the cluster of a program that is started with these words.
Cluster cluster_of(std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  Arguments arguments(std::move(words));
  return Cluster::from_args(arguments.argc, arguments.argv.data());
}

bool are_threads(const Cluster& cluster) {
  return cluster.workers().front().process == getpid();
}

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

TEST_CASE("where ranks run is an option too, as threads unless said", "[actors][cluster]") {
  CHECK(are_threads(cluster_of({"--ranks", "2"})));
  CHECK(are_threads(cluster_of({"--ranks", "2", "--workers=threads"})));
  const Cluster processes = cluster_of({"--ranks", "2", "--workers", "processes"});
  REQUIRE(processes.ranks() == 2);
  for (const WorkerPlace& place : processes.workers()) {
    CHECK(place.process == 0);  // not needed yet
    CHECK(place.incarnation == 0);
    CHECK(place.address.empty());
  }
  Arguments arguments({"train", "--workers=threads", "x", "--credentials", "there", "--ranks=1"});
  (void)Cluster::from_args(arguments.argc, arguments.argv.data());
  CHECK(arguments.left() == std::vector<std::string>{"train", "x"});
}

TEST_CASE("what is no place for ranks is refused", "[actors][cluster][refusals]") {
  const auto text = GENERATE("Threads", "process", "3", "");
  CHECK_THROWS_WITH(cluster_of({"--workers", text}),
                    ContainsSubstring("--workers expects threads, processes or joining, found \""));
  CHECK_THROWS_WITH(cluster_of({"--workers=processes", "--credentials", "/nowhere/at/all"}),
                    ContainsSubstring("/nowhere/at/all"));
}

TEST_CASE("the environment says what the arguments do not", "[actors][cluster]") {
  const EnvironmentVariable ranks("STAGECRAFT_RANKS", "3");
  CHECK(Cluster::from_env().ranks() == 3);
  CHECK(are_threads(Cluster::from_env()));
  CHECK(cluster_of({}).ranks() == 3);
  CHECK(cluster_of({"--ranks", "2"}).ranks() == 2);
  {
    const EnvironmentVariable workers("STAGECRAFT_WORKERS", "processes");
    CHECK_FALSE(are_threads(Cluster::from_env()));
    CHECK(are_threads(cluster_of({"--workers", "threads"})));
    const EnvironmentVariable credentials("STAGECRAFT_CREDENTIALS", "/nowhere/at/all");
    CHECK_THROWS_WITH(Cluster::from_env(), ContainsSubstring("/nowhere/at/all"));
  }
  const EnvironmentVariable empty("STAGECRAFT_WORKERS", "");
  CHECK(are_threads(Cluster::from_env()));  // treated as unset
}

TEST_CASE("a variable that makes no sense is refused by its name", "[actors][cluster][refusals]") {
  const auto text = GENERATE("0", "-1", "two", "2x", "99999999999");
  {
    const EnvironmentVariable ranks("STAGECRAFT_RANKS", text);
    CHECK_THROWS_WITH(
        Cluster::from_env(),
        ContainsSubstring("STAGECRAFT_RANKS expects a whole number of at least 1, found \""));
  }
  const EnvironmentVariable workers("STAGECRAFT_WORKERS", text);
  CHECK_THROWS_WITH(Cluster::from_env(),
                    ContainsSubstring("STAGECRAFT_WORKERS expects threads, processes or joining"));
}

TEST_CASE("a variable with a largest number is refused with it", "[actors][cluster][refusals]") {
  const EnvironmentVariable workers("STAGECRAFT_WORKERS", "processes");
  const EnvironmentVariable port("STAGECRAFT_PORT", "65536");
  CHECK_THROWS_WITH(
      Cluster::from_env(),
      ContainsSubstring("STAGECRAFT_PORT expects a whole number from 0 to 65535, found \"65536\""));
}

}  // namespace
}  // namespace stagecraft
