#include "stagecraft/actors/launch/ways/ssh.h"

#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("words of a worker reach another host's shell as they are", "[actors][hosts]") {
  const ChildProgram program = ssh_worker({"myssh", "-p", "22"},
                                          {.name = "b", .environment = {{"A", "it's"}}},
                                          {"/w x", "--join", "$h"});
  CHECK(program.path == "myssh");
  const std::vector<std::string>& words = program.arguments;
  REQUIRE(words.size() >= 4);
  CHECK(words[words.size() - 4] == "-p");
  CHECK(words[words.size() - 2] == "b");
  CHECK(words.back() ==
        R"(echo 'stagecraft: ssh is through'; env A='it'\''s' '/w x' '--join' '$h'; exit $?)");
}

TEST_CASE("how a worker behind ssh ended is told by what ssh hands on", "[actors][hosts]") {
  CHECK(end_behind_ssh("ended with exit status 137", "b") == "was killed by signal 9 (Killed)");
  CHECK(end_behind_ssh("ended with exit status 1", "b") == "ended with exit status 1");
  CHECK_THAT(end_behind_ssh("ended with exit status 255", "b"),
             ContainsSubstring("ssh could not connect to b, or lost it"));
  CHECK_THAT(end_behind_ssh("was killed by signal 9 (Killed)", "b"),
             ContainsSubstring("the ssh to b was killed"));
}

TEST_CASE("a worker on another host gets its credentials by its lifeline, and its host's line",
          "[actors][hosts]") {
  const TemporaryCredentials credentials(1);
  const SpawnOptions options{
      .program = "/proc/self/exe",
      .hosts = {{.name = "a"}, {.name = "b", .address = "10.0.0.2", .worker = "/opt/w"}}};
  const auto way = workers_by_ssh(options);
  CHECK(way->starts_workers());
  CHECK(way->is_elsewhere());
  bool is_let_in = false;
  const ChildProgram program = way->program(
      {.host = "10.0.0.1", .port = 7, .credentials = credentials.dir() + "/worker-0", .place = 1},
      [&] { is_let_in = true; });
  CHECK_THAT(program.arguments.back(),
             ContainsSubstring("'/opt/w' '--stagecraft-worker' '--join' '10.0.0.1:7'") &&
                 ContainsSubstring("'--credentials' '-'") &&
                 ContainsSubstring("'--bind' '10.0.0.2'"));
  CHECK_THAT(program.input, ContainsSubstring("BEGIN CERTIFICATE"));
  REQUIRE(program.on_line);
  program.on_line("hello");
  CHECK_FALSE(is_let_in);
  program.on_line(kLetInBySsh);
  CHECK(is_let_in);
  CHECK(way->host_text(1, "") == " on b");
  CHECK(way->end_text(1, "ended with exit status 137") == "was killed by signal 9 (Killed)");
}

TEST_CASE("more workers than the hosts have slots for are refused", "[actors][hosts][refusals]") {
  const auto way =
      workers_by_ssh({.program = "/proc/self/exe", .hosts = {{.name = "a", .slots = 2}}});
  way->require_places(2);
  CHECK_THROWS_WITH(way->require_places(3),
                    ContainsSubstring("3 worker processes are needed, and the hosts have places "
                                      "for 2: give them more slots"));
}

}  // namespace
}  // namespace stagecraft
