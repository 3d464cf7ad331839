"""The models of a server, from flags and from TF Serving's own file."""

import pytest

from data_pipeline.errors import UserError
from export.server.models import ModelConfig, check_models, parse_models, read_config_file


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ([], "No model"),
        (["x"], "NAME=PATH"),
        (["a/b=/x"], "NAME=PATH"),
        (["a=/x", "a=/y"], "twice"),
    ],
)
def test_bad_model_flags(arguments, match):
    with pytest.raises(UserError, match=match):
        check_models(parse_models(arguments))


def test_good_model_flags():
    assert parse_models(["a=/x", "b-2.c=/y=z"]) == [
        ModelConfig("a", "/x"),
        ModelConfig("b-2.c", "/y=z"),
    ]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, [7]),
        ({"latest": 2}, [2, 7]),
        ({"latest": 0}, [1, 2, 7]),
        ({"specific": (7, 1, 9)}, [1, 7]),
    ],
)
def test_the_versions_that_are_served(settings, wanted):
    assert ModelConfig("m", "/m", **settings).wanted([1, 2, 7]) == wanted


def test_tf_servings_own_file(tmp_path):
    path = tmp_path / "models.config"
    path.write_text(
        """model_config_list {
          config { name: "a" base_path: "/a" model_platform: "tensorflow" }
          config { name: "b" base_path: "/b"
                   model_version_policy { specific { versions: 3 versions: 5 } }
                   version_labels { key: "stable" value: 3 } }
          config { name: "c" base_path: "/c" model_version_policy { all {} } }
        }"""
    )
    assert read_config_file(str(path)) == [
        ModelConfig("a", "/a"),
        ModelConfig("b", "/b", 1, (3, 5), {"stable": 3}),
        ModelConfig("c", "/c", 0),
    ]
    path.write_text("model_config_list {")
    with pytest.raises(UserError, match="is no text of TF Serving's ModelServerConfig"):
        read_config_file(str(path))


@pytest.mark.parametrize(
    ("config", "missing"), [('base_path: "/a"', "name"), ('name: "a"', "base_path")]
)
def test_a_model_of_a_file_that_nobody_could_ask(tmp_path, config, missing):
    path = tmp_path / "models.config"
    path.write_text(f"model_config_list {{ config {{ {config} }} }}")
    with pytest.raises(UserError, match=f"a model has no {missing}"):
        read_config_file(str(path))
