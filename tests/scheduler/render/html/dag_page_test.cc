#include "stagecraft/scheduler/render/html/dag_page.h"

#include <string>

#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/render/dag/dag_svg.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/scheduler/render/html/html_page.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

IssuedDag issued_with(const std::string& op) {
  DagSource source = bare_source(StageGraph::chain(2));
  source.chunks[0].front().operators = {op, "aten::add.Tensor"};
  return issue(apply(
      parse_strategy("split {} dim=MB n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n"), source));
}

TEST_CASE("a DAG's page knows nodes, edges, transfers and operators", "[scheduler][render][dag]") {
  const IssuedDag issued = issued_with("aten::mm");
  const auto data = data_of(render_dag_page(issued, "Two"));
  CHECK(data["title"] == "Two");
  CHECK(data["stages"] == 2);
  CHECK(data["microbatches"] == 2);
  REQUIRE(data["nodes"].size() == issued.dag.nodes.size());
  CHECK(data["nodes"][0]["name"] == "0F0");
  CHECK(data["nodes"][0]["kind"] == "forward");
  CHECK(data["nodes"][0]["ranks"] == "[0]");
  CHECK(data["nodes"][0]["stream"] == "compute");
  CHECK(data["nodes"][0]["turn"] == 1);
  CHECK(data["nodes"][0]["of"] == issued.lists[0].size());
  CHECK(data["edges"].size() == issued.dag.edges.size() + issued.dag.count(DagKind::Send));
  CHECK(data["edges"].back()[2] == "transfer");
  CHECK(data["operators"][0][0] == nlohmann::json{"aten::mm", "aten::add.Tensor"});
  CHECK(data["operators"][1][0].empty());
  CHECK(data["svg"] == render_dag_svg(issued));
}

TEST_CASE("no text of a DAG's page ends an element (H-1)", "[scheduler][render][dag]") {
  const std::string evil = "</script><script>alert(1)</script><!--\"&";
  const std::string html = render_dag_page(issued_with(evil), evil);
  CHECK(html.find("<script>alert") == std::string::npos);
  const auto data = data_of(html);
  CHECK(data["operators"][0][0][0] == evil);
  CHECK(data["title"] == evil);
}

}  // namespace
}  // namespace stagecraft
