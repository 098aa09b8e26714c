/// Tests the file of a worker's output, and its bound.

#include "stagecraft/actors/launch/ways/worker_output.h"

#include <filesystem>

#include "stagecraft/actors/launch/ways/started_worker.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft {
namespace {

TEST_CASE("a worker that writes without end fills two files of its bound (OUT-1)",
          "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path() + "/rank-0.log";
  const WorkerOutput output("rank 0", file, 20);
  for (int line = 1; line <= 9; ++line) {
    output.line("line " + std::to_string(line));  // 7 bytes
  }
  CHECK(tests::read_text_file(file) == "line 9\n");
  CHECK(tests::read_text_file(file + ".old") == "line 7\nline 8\n");
}

TEST_CASE("the bound counts what an earlier worker has written (OUT-1)", "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.write("rank-0.log", "fifteen bytes.\n");
  WorkerOutput("rank 0", file, 20).line("new");
  CHECK(tests::read_text_file(file) == "fifteen bytes.\nnew\n");
  WorkerOutput("rank 0", file, 20).line("newer");
  CHECK(tests::read_text_file(file) == "newer\n");
}

TEST_CASE("each incarnation of a worker has a file of its own", "[actors][launch]") {
  const SpawnOptions options{.local_ranks = 1, .log_dir = "logs"};
  CHECK(log_of(options, Rank(2), 0) == "logs/rank-2.log");
  CHECK(log_of(options, Rank(2), 3) == "logs/rank-2-incarnation-3.log");
  CHECK(log_of(options, Rank(0), 0).empty());  // a thread of the driver
  CHECK(log_of({}, Rank(2), 0).empty());
  CHECK(log_of({.ranks_per_process = 2, .log_dir = "logs"}, Rank(3), 1) ==
        "logs/ranks-2-3-incarnation-1.log");
}

}  // namespace
}  // namespace stagecraft
