from imm import extras


def test_a_clone_keeps_its_editable_install(tmp_path, monkeypatch):
    assert extras.install("onnx") == "pip install -e '.[onnx]'"
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "site-packages" / "imm" / "extras.py"))
    assert extras.install("onnx") == "pip install 'imm[onnx]'"
