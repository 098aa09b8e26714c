/// Tests the page of render_dag_page() in a real browser.
#include "stagecraft/scheduler/render/html/dag_page.h"

#include <string>

#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/browser/page.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kTwoCopies =
    "split {} dim=MB n=2\nplace {PP:0} on [0,2]\nplace {PP:1} on [1,3]\n"
    "replicate {PP:0} on [0,2] reduce_stream=dp\nreplicate {PP:1} on [1,3] reduce_stream=dp\n";
constexpr const char* kEvil = "<img src=x onerror=document.title='broken'>";

std::string page_of(const std::string& title = "Two copies") {
  DagSource source = bare_source(StageGraph::chain(2));
  source.chunks[0].front().operators = {"aten::embedding", kEvil};
  return render_dag_page(issue(apply(parse_strategy(kTwoCopies), source)), title);
}

class DagPages {
 public:
  Page open(const std::string& fragment = "", const PageOptions& options = {}) {
    return Page(browser_, folder_.write("dag.html", page_of()) + fragment, options);
  }

 private:
  Chromium browser_;
  TemporaryFolder folder_;
};

TEST_CASE("a DAG is drawn without a complaint, light, dark and narrow", "[browser]") {
  struct Look {
    const char* name;
    PageOptions options;
  };
  const Look looks[] = {{"dag", {.width = 1280, .height = 800}},
                        {"dag-dark", {.width = 1280, .height = 800, .dark = true}},
                        {"dag-narrow", {.width = 420, .height = 1200}}};
  DagPages pages;
  for (const Look& look : looks) {
    CAPTURE(look.name);
    Page page = pages.open("", look.options);
    const Screenshot shot = page.screenshot();
    save(shot, look.name);
    CHECK(page.complaints() == std::vector<std::string>());
    CHECK(page.requests().size() == 1);
    CHECK(shot.colors > 20);
    CHECK(page.count("#graph .node") == 22);
    CHECK(page.count("#graph .lane") == 8);
    CHECK(page.evaluate("document.documentElement.scrollWidth") == look.options.width);
  }
}

TEST_CASE("a clicked node shows its details, and its neighbors can be clicked", "[browser]") {
  DagPages pages;
  Page page = pages.open();
  CHECK_THAT(page.text("#selection"), ContainsSubstring("Click a node"));
  page.click(page.middle_of("#node-0"));
  CHECK(page.text("#selection h2") == "0F0");
  const std::string details = page.text("#selection");
  for (const char* part :
       {"forward", "compute", "[0,2]", "2 operators", "aten::embedding", "send 0F0 to stage 1"}) {
    CHECK_THAT(details, ContainsSubstring(part));
  }
  CHECK(page.count("#node-0.chosen") == 1);
  CHECK(page.count(".node.near") == 3);  // 0F1, the send and the backward
  page.click(page.middle_of("#selection .task[data-node='10']"));
  CHECK(page.text("#selection h2") == "send 0F0 to stage 1");
  CHECK_THAT(page.text("#selection"),
             ContainsSubstring("receive 1F0 from stage 0") && ContainsSubstring("transfer"));
  page.press("Escape");
  CHECK(page.count(".chosen") == 0);
}

TEST_CASE("operators and titles of a DAG's page are text", "[browser]") {
  DagPages pages;
  Page page = pages.open("#node=0&theme=dark");
  CHECK(page.text("#selection h2") == "0F0");
  CHECK_THAT(page.text("#operators"), ContainsSubstring(kEvil));
  CHECK(page.count("img") == 0);
  CHECK(page.evaluate("document.title") == "Two copies");
  CHECK(page.evaluate("document.documentElement.dataset.theme") == "dark");
  CHECK(page.complaints() == std::vector<std::string>());
}

}  // namespace
}  // namespace stagecraft::tests
