#include "stagecraft/tests/hosts/cluster_words.h"

#include <stdexcept>

namespace stagecraft::tests {

Words join(Words first, const Words& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

Words launch_words(const TestHosts& hosts,
                   const std::string& file,
                   const Words& program,
                   const Words& options) {
  const Words launch{STAGECRAFT_COMMAND, "launch", "--hosts", file, "--ssh", hosts.ssh()};
  return hosts.on(0, join(join(launch, options), join({"--"}, program)));
}

Joining::Joining(const TestHosts& hosts)
    : hosts_(hosts), credentials_(hosts.folder() + "/credentials") {
  const CommandResult made = run_command({STAGECRAFT_COMMAND,
                                          "credentials",
                                          "make",
                                          credentials_,
                                          "--workers",
                                          std::to_string(hosts.size())});
  if (made.exit_code != 0) {
    throw std::runtime_error("no credentials: " + made.err);
  }
}

Words Joining::driver(const Words& program, const Words& variables) const {
  const Words env{"env",
                  "STAGECRAFT_WORKERS=joining",
                  "STAGECRAFT_RANKS=2",
                  "STAGECRAFT_PORT=7077",
                  "STAGECRAFT_CREDENTIALS=" + credentials_};
  return hosts_.on(0, join(join(env, variables), program));
}

Words Joining::worker(int host, const std::string& address, const Words& options) const {
  const Words words{STAGECRAFT_COMMAND,
                    "worker",
                    "--join",
                    address + ":7077",
                    "--credentials",
                    credentials_ + "/worker-" + std::to_string(host - 1)};
  return hosts_.named_on(host, join(words, options));
}

}  // namespace stagecraft::tests
