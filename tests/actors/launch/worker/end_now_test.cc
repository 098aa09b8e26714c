#include "stagecraft/actors/launch/worker/end_now.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Sends a member's credentials to a child process, which writes the name of its folder and ends.
struct EndedChild {
  std::string folder;
  int status = 0;
};

EndedChild end_child(int status) {
  const TemporaryCredentials cluster(1);
  const std::string text = text_of_member(cluster.dir() + "/worker-0");
  int to_child[2];
  int from_child[2];
  REQUIRE(pipe(to_child) == 0);
  REQUIRE(pipe(from_child) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::shared_ptr<const TemporaryCredentials> own =
        TemporaryCredentials::received(to_child[0]);
    const bool is_there = std::filesystem::exists(own->dir());
    const auto written = write(from_child[1], own->dir().data(), own->dir().size());
    end_now(own, is_there && written > 0 ? status : 99);
  }
  close(from_child[1]);
  REQUIRE(write(to_child[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  EndedChild ended;
  char buffer[256];
  for (ssize_t got = 0; (got = read(from_child[0], buffer, sizeof(buffer))) > 0;) {
    ended.folder.append(buffer, static_cast<std::size_t>(got));
  }
  REQUIRE(waitpid(child, &ended.status, 0) == child);
  for (const int end : {to_child[0], to_child[1], from_child[0]}) {
    close(end);
  }
  return ended;
}

TEST_CASE("a worker that ends at once leaves no credentials of the lifeline",
          "[actors][security]") {
  const EndedChild ended = end_child(1);
  REQUIRE(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == 1);
  REQUIRE_FALSE(ended.folder.empty());
  CHECK_FALSE(std::filesystem::exists(ended.folder));
}

TEST_CASE("a worker without credentials of its own ends too", "[actors][security]") {
  const pid_t child = fork();
  if (child == 0) {
    end_now(nullptr, 4);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 4);
}

}  // namespace
}  // namespace stagecraft
