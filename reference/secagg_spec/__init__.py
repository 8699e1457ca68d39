"""The executable reference specification of secure aggregation for federated learning.

Nothing is imported here: each layer is imported by its own name, for example
``from secagg_spec.protocols.lightsecagg import round as lightsecagg``.
"""

__version__ = "0.1.0"
