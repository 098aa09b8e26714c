#include "stagecraft/tools/doctor/report.h"

#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/doctor/exams.h"
#include "stagecraft/tools/doctor/talk/talk.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("the report has a line for what is good and a remedy for what is not",
          "[tools][doctor]") {
  const std::vector<Finding> findings{{"node-a", "memory", Level::Ok, "8 GiB left", ""},
                                      {"node-b", "memory", Level::Problem, "8 B left", "buy more"},
                                      {"node-a", "gpu", Level::Note, "none", ""}};
  CHECK(findings_text(findings) ==
        "node-a\n"
        "  ok       memory         8 GiB left\n"
        "  note     gpu            none\n"
        "node-b\n"
        "  problem  memory         8 B left\n"
        "                          mend: buy more\n"
        "1 problem, 1 note\n");
  const Json json = Json::parse(findings_json(findings, {well("node-a")}));
  CHECK(json["good"] == false);
  CHECK(json["findings"].size() == 3);
  CHECK(json["findings"][1]["level"] == "problem");
  CHECK(json["hosts"][0]["facts"]["cpu"]["capability"] == "AVX2");
}

}  // namespace
}  // namespace stagecraft::tools
