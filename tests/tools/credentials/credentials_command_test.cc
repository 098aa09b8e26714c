/// Tests `stagecraft credentials`: make, renew and show, for people and for programs.

#include <sys/stat.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/credentials/credentials.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;
using Json = nlohmann::json;

CommandResult run_credentials(const std::vector<std::string>& words) {
  return run_in_test(&tools::credentials, words);
}

CommandResult run_well(const std::vector<std::string>& words) {
  CommandResult result = run_credentials(words);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE(result.err.empty());
  return result;
}

struct Cluster {
  TemporaryFolder folder;
  std::string dir = folder.path() + "/cluster";

  Cluster() { make_credentials(dir, {.members = 2, .cluster = "north", .durable = false}); }
};

/// Replaces each character that differs from run to run by a letter.
std::string without_chance(const std::string& text) {
  std::string plain =
      std::regex_replace(text, std::regex("([0-9A-F]{2}:){31}[0-9A-F]{2}"), "PRINT");
  plain = std::regex_replace(plain, std::regex("[0-9-]{10} [0-9:]{8} UTC"), "TIME");
  return std::regex_replace(plain, std::regex("serial       [0-9A-F]+"), "serial       SERIAL");
}

}  // namespace

TEST_CASE("make makes a cluster and says what to do with it", "[tools][credentials]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  const CommandResult made =
      run_well({"make", dir, "--workers", "2", "--valid-days", "3", "--cluster", "north"});
  CHECK(without_chance(made.out) ==
        "made '" + dir + "': cluster 'north', the driver and 2 workers, valid until TIME\n" +
            "copy one folder to one host ('" + dir + "/worker-0'); 'ca-key.pem' stays here\n");
  CHECK_NOTHROW(load_credentials(dir + "/driver"));
  CHECK_NOTHROW(load_credentials(dir + "/worker-1"));
  CHECK_FALSE(fs::exists(dir + "/worker-2"));
  check_message(run_credentials({"make", dir}), 2, {"cluster' exists, and credentials"});
  check_message(
      run_credentials({"make", folder.path() + "/no/no"}), 2, {"no/no' cannot be made", "first"});
}

TEST_CASE("show says who is in a cluster, and nothing of a key", "[tools][credentials]") {
  const Cluster cluster;
  const CommandResult shown = run_well({"show", cluster.dir});
  const std::string member =
      "  valid from   TIME\n  valid until  TIME\n  serial       SERIAL\n  SHA-256      PRINT\n";
  const std::string files = "  files        ca.pem 0644, certificate.pem 0644, key.pem 0600\n";
  CHECK(without_chance(shown.out) == "cluster north\n\nauthority\n" + member +
                                         "  files        ca.pem 0644, ca-key.pem 0600\n\ndriver\n" +
                                         member + files + "\nworker-0\n" + member + files +
                                         "\nworker-1\n" + member + files);

  const CommandResult one = run_well({"show", cluster.dir + "/worker-1/"});
  CHECK(without_chance(one.out) ==
        "cluster north\n\nauthority\n" + member + "\nworker-1\n" + member + files);

  const Json json = Json::parse(run_well({"show", cluster.dir, "--json"}).out);
  CHECK(json.at("good") == true);
  CHECK(json.at("cluster") == "north");
  CHECK(json.at("authority").at("name") == "authority");
  CHECK(json.at("files") == Json::parse(R"([{"name": "ca.pem", "mode": "0644"},
                                            {"name": "ca-key.pem", "mode": "0600"}])"));
  CHECK(json.at("problems").empty());
  REQUIRE(json.at("processes").size() == 3);
  const Json& worker = json.at("processes").at(2);
  CHECK(worker.at("name") == "worker-1");
  CHECK(worker.at("certificate").at("name") == "worker-1");
  CHECK(worker.at("certificate").at("sha256").get<std::string>().size() == 95);
  CHECK_THAT(worker.at("certificate").at("valid_until").get<std::string>(),
             Catch::Matchers::Matches("[0-9-]{10}T[0-9:]{8}Z"));
  CHECK(worker.at("files").back() == Json{{"name", "key.pem"}, {"mode", "0600"}});
  CHECK(worker.at("problems").empty());

  std::istringstream key(read_text_file(cluster.dir + "/worker-1/key.pem"));
  for (std::string line; std::getline(key, line);) {
    CHECK_THAT(shown.out + one.out + json.dump(), !ContainsSubstring(line));
  }
}

TEST_CASE("show ends with 1 and lists everything that is wrong", "[tools][credentials]") {
  const Cluster cluster;
  const std::string dir = cluster.dir;
  chmod((dir + "/worker-1/key.pem").c_str(), 0644);
  fs::remove(dir + "/driver/certificate.pem");
  issue_member(dir, "worker-0", 1h, std::chrono::system_clock::now() - 24h);
  issue_member(dir, "worker-10", 1h);
  chmod((dir + "/ca-key.pem").c_str(), 0640);
  make_credentials(cluster.folder.path() + "/other", {.members = 1, .durable = false});
  fs::copy(cluster.folder.path() + "/other/worker-0", dir + "/guest");

  const CommandResult shown = run_credentials({"show", dir});
  CHECK(shown.exit_code == 1);
  CHECK(shown.err.empty());
  for (const char* const part : {"  wrong: '",
                                 "ca-key.pem' (mode 0640), and anybody",
                                 "driver/certificate.pem' is missing",
                                 "\nguest, as worker-0\n",
                                 "guest' trusts another authority",
                                 "worker-0/certificate.pem' has expired",
                                 "worker-1/key.pem' (mode 0644), and anybody"}) {
    CHECK_THAT(shown.out, ContainsSubstring(part));
  }
  const CommandResult as_json = run_credentials({"show", dir, "--json"});
  CHECK(as_json.exit_code == 1);
  const Json json = Json::parse(as_json.out);
  CHECK(json.at("good") == false);
  CHECK(json.at("problems").size() == 1);
  std::string names;
  for (const Json& process : json.at("processes")) {
    names += process.at("name").get<std::string>() + ' ';
    CHECK(process.at("problems").size() == (process.at("name") == "worker-10" ? 0 : 1));
  }
  CHECK(names == "driver guest worker-0 worker-1 worker-10 ");

  // The authority's key may be in another place.
  fs::remove(dir + "/ca-key.pem");
  CHECK(Json::parse(run_credentials({"show", dir, "--json"}).out).at("problems").empty());
  fs::remove(dir + "/ca.pem");
  const Json headless = Json::parse(run_credentials({"show", dir, "--json"}).out);
  CHECK(headless.at("authority").is_null());
  CHECK(headless.at("problems").size() == 1);
}

TEST_CASE("renew makes an expired member good, and a new one where it is told to",
          "[tools][credentials]") {
  const Cluster cluster;
  const std::string dir = cluster.dir;
  issue_member(dir, "worker-1", 1h, std::chrono::system_clock::now() - 24h);
  CHECK(run_credentials({"show", dir + "/worker-1"}).exit_code == 1);
  CHECK(without_chance(run_well({"renew", dir, "worker-1", "--valid-days", "2"}).out) ==
        "renewed '" + dir + "/worker-1', valid until TIME\ncopy its certificate.pem to its host\n");
  CHECK(run_credentials({"show", dir}).exit_code == 0);

  check_message(run_credentials({"renew", dir, "worker-2"}),
                2,
                {"has no credentials of 'worker-2'", "did you mean worker-0?", "--add makes them"});
  CHECK(without_chance(run_well({"renew", dir, "worker-2", "--add"}).out) ==
        "added '" + dir + "/worker-2', valid until TIME\ncopy the folder to its host\n");
  CHECK_NOTHROW(load_credentials(dir + "/worker-2"));
  check_message(run_credentials({"renew", dir, "worker-2", "--add"}),
                2,
                {"has credentials of 'worker-2' already", "leave out --add"});
  fs::remove(dir + "/ca-key.pem");
  check_message(run_credentials({"renew", dir, "driver"}), 2, {"ca-key.pem' does not exist"});
}

TEST_CASE("wrong words and folders that are no credentials end with 2", "[tools][credentials]") {
  const TemporaryFolder folder;
  const std::string empty = folder.path();
  CHECK(run_credentials({}).exit_code == 2);
  check_message(run_credentials({"shwo"}), 2, {"found 'shwo'", "did you mean show?"});
  check_message(run_credentials({"make"}), 2, {"DIR"});
  check_message(run_credentials({"make", empty + "/a", "--workers", "0"}), 2, {"--workers"});
  check_message(run_credentials({"make", empty + "/a", "--valid-days", "0"}), 2, {"--valid-days"});
  check_message(run_credentials({"make", empty + "/a", "--cluster", "a b"}), 2, {"found 'a b'"});
  check_message(run_credentials({"make", empty + "/a", "--worker", "2"}), 2, {"--workers"});
  check_message(run_credentials({"show"}), 2, {"DIR"});
  check_message(run_credentials({"show", empty + "/none"}), 2, {"there is no folder"});
  check_message(run_credentials({"show", empty}), 2, {"contains no credentials"});
  check_message(run_credentials({"show", folder.write("file", "x")}), 2, {"file' is a file"});
  check_message(run_credentials({"renew", empty, "driver"}), 2, {"contains no credentials"});
  CHECK_FALSE(fs::exists(empty + "/a"));
}

TEST_CASE("every credentials command has a help", "[tools][credentials]") {
  const std::string all = run_well({"--help"}).out;
  for (const std::string name : {"make", "renew", "show"}) {
    CHECK_THAT(all, ContainsSubstring("\n  " + name + " DIR"));
    CHECK_THAT(
        run_well({name, "--help"}).out,
        ContainsSubstring("stagecraft credentials " + name) && ContainsSubstring("Example:"));
  }
}

}  // namespace stagecraft::tests
